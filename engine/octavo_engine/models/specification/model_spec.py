"""What a decoder's arithmetic needs to know about one model, and which tensors it consists of. Loads no torch.

Made from a GGUF header by `gguf_specification`, from a config.json by `config_specification`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from octavo_engine.errors import ModelLoadError
from octavo_engine.models.specification.architecture import Architecture
from octavo_engine.models.specification.rope_spec import RopeSpec

# More than any model has; a damaged file may state anything.
MAX_LAYERS = 4096


class Unsupported(ModelLoadError):
    """A sound model that Octavo's own decoder does not compute; another may."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpertSpec:
    """A mixture of experts (Shazeer et al. 2017) in place of the feed-forward block.

    Attributes:
        count: experts of a layer.
        used: experts that compute a token: those to which the router gives most.
        width: inner width of an expert.
        normalises: the weights of the chosen ones are made to add up to 1.
        layers: for each layer, whether it has experts.
    """

    count: int
    used: int
    width: int
    normalises: bool
    layers: tuple[bool, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """Sizes and constants of one model.

    Attributes:
        hidden: width of the residual stream.
        intermediate: width of the feed-forward block.
        rope: the rotation of queries and keys.
        local_rope: the rotation in layers with a window, where that is another.
        rope_factors: the file holds a divisor for each rotary frequency.
        interleaved: rotary pairs are neighbours.
        rotates: for each layer, whether queries and keys are rotated.
        windows: for each layer, how many positions a token sees, 0 for all.
        attention_scale: factor of the scores.
        score_cap, logit_cap: x becomes cap * tanh(x / cap); 0 for none.
        embedding_scale, residual_scale, logit_scale: factors of the embeddings, of what a block adds, of the logits.
        epsilon: of the normalisations.
        context_length: positions that the model was trained for.
        tied_head: the output head is the token embedding.
    """

    architecture: Architecture
    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab_size: int
    context_length: int
    epsilon: float
    rope: RopeSpec
    rotates: tuple[bool, ...]
    windows: tuple[int, ...]
    attention_scale: float
    local_rope: RopeSpec | None = None
    rope_factors: bool = False
    interleaved: bool = False
    score_cap: float = 0.0
    logit_cap: float = 0.0
    embedding_scale: float = 1.0
    residual_scale: float = 1.0
    logit_scale: float = 1.0
    experts: ExpertSpec | None = None
    tied_head: bool = False

    @property
    def query_width(self) -> int:
        """Width of all query heads."""
        return self.heads * self.head_dim

    @property
    def kv_width(self) -> int:
        """Width of all key heads."""
        return self.kv_heads * self.head_dim

    @property
    def kv_values_per_token(self) -> int:
        """Numbers that one position has in the KV pages."""
        return 2 * self.layers * self.kv_width

    def has_experts(self, layer: int) -> bool:
        """Whether a mixture of experts stands in this layer."""
        return self.experts is not None and self.experts.layers[layer]

    def tensors(self) -> dict[str, tuple[int, ...]]:
        """Name and shape of every tensor that the model must have."""
        shapes: dict[str, tuple[int, ...]] = {
            "token_embd.weight": (self.vocab_size, self.hidden),
            "output_norm.weight": (self.hidden,),
        }
        if not self.tied_head:
            shapes["output.weight"] = (self.vocab_size, self.hidden)
        if self.rope_factors:
            shapes["rope_freqs.weight"] = (self.rope.width // 2,)
        for layer in range(self.layers):
            for name, shape in self._layer_tensors(layer).items():
                shapes[f"blk.{layer}.{name}"] = shape
        return shapes

    def biases(self) -> dict[str, tuple[int, ...]]:
        """Name and shape of every bias that the model may have."""
        outputs = {name: shape[:1] for name, shape in self.tensors().items() if len(shape) == 2}
        return {
            name.removesuffix("weight") + "bias": shape
            for name, shape in outputs.items()
            if name.startswith("blk.") and "gate_inp" not in name
        }

    def _layer_tensors(self, layer: int) -> dict[str, tuple[int, ...]]:
        shapes: dict[str, tuple[int, ...]] = {f"{norm}.weight": (self.hidden,) for norm in self.architecture.norms}
        if self.architecture.fused:
            shapes["attn_qkv.weight"] = (self.query_width + 2 * self.kv_width, self.hidden)
        else:
            shapes["attn_q.weight"] = (self.query_width, self.hidden)
            shapes["attn_k.weight"] = shapes["attn_v.weight"] = (self.kv_width, self.hidden)
        shapes["attn_output.weight"] = (self.hidden, self.query_width)
        if self.architecture.head_norms:
            whole = self.architecture.head_norms == "row"
            shapes["attn_q_norm.weight"] = (self.query_width if whole else self.head_dim,)
            shapes["attn_k_norm.weight"] = (self.kv_width if whole else self.head_dim,)
        for name in self.architecture.biased:
            shapes[f"{name}.bias"] = shapes[f"{name}.weight"][:1]
        return shapes | (self._expert_tensors() if self.has_experts(layer) else self._feed_forward_tensors())

    def _feed_forward_tensors(self) -> dict[str, tuple[int, ...]]:
        shapes: dict[str, tuple[int, ...]] = {"ffn_down.weight": (self.hidden, self.intermediate)}
        if self.architecture.fused:
            return shapes | {"ffn_up.weight": (2 * self.intermediate, self.hidden)}
        return shapes | dict.fromkeys(("ffn_gate.weight", "ffn_up.weight"), (self.intermediate, self.hidden))

    def _expert_tensors(self) -> dict[str, tuple[int, ...]]:
        assert self.experts is not None
        count, width = self.experts.count, self.experts.width
        into = (count, width, self.hidden)
        return {
            "ffn_gate_inp.weight": (count, self.hidden),
            "ffn_gate_exps.weight": into,
            "ffn_up_exps.weight": into,
            "ffn_down_exps.weight": (count, self.hidden, width),
        }


def check_specification(spec: ModelSpec, shapes: Mapping[str, tuple[int, ...]], ignored: Collection[str] = ()) -> None:
    """Check a specification against itself and against the tensors that are there.

    Args:
        spec: the model.
        shapes: shape of each tensor by its GGUF name.
        ignored: tensors that need not be known.

    Raises:
        ModelLoadError: they contradict each other, a tensor is missing, or one would be ignored.
    """
    if spec.heads % spec.kv_heads:
        raise ModelLoadError(
            f"The model is damaged: {spec.heads} query heads cannot share {spec.kv_heads} key heads. Download it again."
        )
    if spec.head_dim % 8 or spec.rope.width % 2 or spec.rope.width > spec.head_dim:
        raise ModelLoadError(
            f"The model's heads have {spec.head_dim} dimensions, {spec.rope.width} of them rotated; this Octavo runs "
            "multiples of 8 with an even part rotated."
        )
    # Before the list of tensors is made: a layer count from a damaged file may be huge.
    least = spec.layers * 5
    if spec.layers > MAX_LAYERS or least > len(shapes):
        raise ModelLoadError(
            f"The model holds {len(shapes)} tensors, too few for {spec.layers} layers. "
            "It may be one part of several; get the whole model.",
            needed=least,
            available=len(shapes),
        )
    expected = spec.tensors()
    for name, shape in expected.items():
        found = shapes.get(name)
        if found is None:
            raise ModelLoadError(f"The model lacks the tensor {name!r}. Get another copy of this model.")
        if found != shape:
            raise ModelLoadError(
                f"The model is damaged: {name!r} has the shape {found} instead of {shape}. Download it again."
            )
    possible = spec.biases()
    for name in shapes.keys() - expected.keys() - set(ignored):
        # A tensor that is ignored would make the answers quietly wrong.
        if name not in possible:
            raise ModelLoadError(
                f"The model has a part that this Octavo does not compute: the tensor {name!r}. Update Octavo, or "
                "choose another model."
            )
        if shapes[name] != possible[name]:
            raise ModelLoadError(
                f"The model is damaged: {name!r} has the shape {shapes[name]} instead of {possible[name]}. "
                "Download it again."
            )
