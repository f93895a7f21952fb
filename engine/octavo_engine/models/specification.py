"""What a decoder's arithmetic needs to know about a model, read from its header. Loads no torch.

An architecture is a table of names and a few flags; another one is another entry, not another reader.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeVar

from octavo_engine.errors import ModelLoadError
from octavo_engine.models.gguf_header import GgufHeader
from octavo_engine.models.tensor_type import READABLE

_Number = TypeVar("_Number", int, float)


@dataclass(frozen=True, slots=True)
class Architecture:
    """A family of decoders.

    Attributes:
        name: as in `general.architecture`, and the prefix of its metadata keys.
        rope_interleaved: rotary pairs are neighbours. llama.cpp stores the q and k rows of "llama" in this order.
        layer_tensors: shape of each tensor of a layer by its name within "blk.N.", in sizes of `ModelSpec`.
    """

    name: str
    rope_interleaved: bool
    layer_tensors: Mapping[str, tuple[str, ...]]


ARCHITECTURES: Mapping[str, Architecture] = MappingProxyType(
    {
        "llama": Architecture(
            name="llama",
            rope_interleaved=True,
            layer_tensors=MappingProxyType(
                {
                    "attn_norm.weight": ("hidden",),
                    "attn_q.weight": ("query_width", "hidden"),
                    "attn_k.weight": ("kv_width", "hidden"),
                    "attn_v.weight": ("kv_width", "hidden"),
                    "attn_output.weight": ("hidden", "query_width"),
                    "ffn_norm.weight": ("hidden",),
                    "ffn_gate.weight": ("intermediate", "hidden"),
                    "ffn_up.weight": ("intermediate", "hidden"),
                    "ffn_down.weight": ("hidden", "intermediate"),
                }
            ),
        ),
    }
)


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """Sizes and constants of one model.

    Attributes:
        hidden: width of the residual stream.
        intermediate: width of the feed-forward block.
        rope_width: leading dimensions of each head that are rotated.
        rope_base: base of the rotary frequencies.
        rope_scale: every rotary angle is divided by it.
        epsilon: of the normalisations.
        context_length: positions that the model was trained for.
        tied_head: the output head is the token embedding.
        rope_factors: the file holds a divisor for each rotary frequency.
    """

    architecture: Architecture
    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    rope_width: int
    rope_base: float
    rope_scale: float
    epsilon: float
    context_length: int
    vocab_size: int
    tied_head: bool
    rope_factors: bool

    @property
    def query_width(self) -> int:
        """Width of all query heads."""
        return self.heads * self.head_dim

    @property
    def kv_width(self) -> int:
        """Width of all key heads."""
        return self.kv_heads * self.head_dim

    def tensors(self) -> dict[str, tuple[int, ...]]:
        """Name and shape of every tensor that the file must hold, and it must hold no other."""
        shapes: dict[str, tuple[int, ...]] = {
            "token_embd.weight": (self.vocab_size, self.hidden),
            "output_norm.weight": (self.hidden,),
        }
        if not self.tied_head:
            shapes["output.weight"] = (self.vocab_size, self.hidden)
        if self.rope_factors:
            shapes["rope_freqs.weight"] = (self.rope_width // 2,)
        for layer in range(self.layers):
            for name, sizes in self.architecture.layer_tensors.items():
                shapes[f"blk.{layer}.{name}"] = tuple(getattr(self, size) for size in sizes)
        return shapes


def read_specification(header: GgufHeader) -> ModelSpec:
    """The specification of a model, checked against the tensors that its file holds.

    Raises:
        ModelLoadError: an architecture or a variant that Octavo does not run, or a header that contradicts itself.
    """
    name = header.metadata.get("general.architecture")
    architecture = ARCHITECTURES.get(name) if isinstance(name, str) else None
    if architecture is None:
        raise ModelLoadError(
            f"The model's architecture is {name!r}. This Octavo runs: {', '.join(sorted(ARCHITECTURES))}."
        )
    keys = _Keys(architecture.name, header.metadata)
    hidden = keys.number("embedding_length", int)
    heads = keys.number("attention.head_count", int)
    head_dim = keys.number("attention.key_length", int, hidden // heads)
    embedding = header.tensors.get("token_embd.weight")
    if embedding is None or len(embedding.shape) != 2:
        raise ModelLoadError(
            "The model file holds no token embedding. It may be one part of several; get the whole model."
        )
    spec = ModelSpec(
        architecture=architecture,
        layers=keys.number("block_count", int),
        hidden=hidden,
        intermediate=keys.number("feed_forward_length", int),
        heads=heads,
        kv_heads=keys.number("attention.head_count_kv", int, heads),
        head_dim=head_dim,
        rope_width=keys.number("rope.dimension_count", int, head_dim),
        rope_base=keys.number("rope.freq_base", float, 10_000.0),
        rope_scale=keys.rope_scale(),
        epsilon=keys.number("attention.layer_norm_rms_epsilon", float),
        context_length=keys.number("context_length", int),
        vocab_size=embedding.shape[0],
        tied_head="output.weight" not in header.tensors,
        rope_factors="rope_freqs.weight" in header.tensors,
    )
    _check_sizes(spec, keys)
    _check_tensors(spec, header)
    return spec


class _Keys:
    """The metadata of one architecture."""

    def __init__(self, prefix: str, metadata: Mapping[str, Any]) -> None:
        self._prefix = prefix
        self._metadata = metadata

    def number(self, key: str, kind: type[_Number], default: _Number | None = None) -> _Number:
        """A positive number; int stands for both kinds."""
        value = self._metadata.get(f"{self._prefix}.{key}", default)
        if value is None:
            raise ModelLoadError(f"The model file does not state {self._prefix}.{key}. Get another file of this model.")
        if isinstance(value, bool) or not isinstance(value, int | kind) or not 0 < value < 1 << 31:
            raise ModelLoadError(
                f"The model file states {self._prefix}.{key} = {_shown(value)}, which this Octavo cannot run. "
                "Get another file of this model."
            )
        return kind(value)

    def rope_scale(self) -> float:
        """The divisor of linearly scaled positions."""
        kind = self._metadata.get(f"{self._prefix}.rope.scaling.type", "none")
        if kind == "none":
            return 1.0
        if kind == "linear":
            return self.number("rope.scaling.factor", float)
        raise ModelLoadError(f"The model scales its positions by {_shown(kind)}, which this Octavo does not do yet.")

    def refuse_experts(self) -> None:
        """Mixtures of experts share the name of the dense architecture."""
        experts = self._metadata.get(f"{self._prefix}.expert_count", 0)
        if experts != 0:
            raise ModelLoadError(
                f"The model is a mixture of {_shown(experts)} experts, which this Octavo does not run yet."
            )


def _shown(value: object) -> str:
    """A value in a sentence, whatever its length."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


def _check_sizes(spec: ModelSpec, keys: _Keys) -> None:
    keys.refuse_experts()
    if spec.heads % spec.kv_heads:
        raise ModelLoadError(
            f"The model file is damaged: {spec.heads} query heads cannot share {spec.kv_heads} key heads. "
            "Download it again."
        )
    if spec.head_dim % 8 or spec.rope_width % 2 or spec.rope_width > spec.head_dim:
        raise ModelLoadError(
            f"The model's heads have {spec.head_dim} dimensions, {spec.rope_width} of them rotated; this Octavo runs "
            "multiples of 8 with an even part rotated."
        )


def _check_tensors(spec: ModelSpec, header: GgufHeader) -> None:
    # Before anything is built: a layer count from a damaged file may be huge.
    if spec.layers * len(spec.architecture.layer_tensors) > len(header.tensors):
        raise ModelLoadError(
            f"The model file holds {len(header.tensors)} tensors, too few for {spec.layers} layers. "
            "It may be one part of several; get the whole model.",
            needed=spec.layers * len(spec.architecture.layer_tensors),
            available=len(header.tensors),
        )
    expected = spec.tensors()
    for name, shape in expected.items():
        tensor = header.tensors.get(name)
        if tensor is None:
            raise ModelLoadError(f"The model file lacks the tensor {name!r}. Get another file of this model.")
        if tensor.shape != shape:
            raise ModelLoadError(
                f"The model file is damaged: {name!r} has the shape {tensor.shape} instead of {shape}. "
                "Download it again."
            )
        if tensor.type not in READABLE:
            raise ModelLoadError(
                f"The model holds weights in the format {tensor.type.name}, which this Octavo does not read yet. "
                f"Get the model in one of: {', '.join(kind.name for kind in sorted(READABLE))}."
            )
    # A tensor that is ignored would make the answers quietly wrong.
    unknown = header.tensors.keys() - expected.keys()
    if unknown:
        raise ModelLoadError(
            f"The model has a part that this Octavo does not compute: the tensor {min(unknown)!r}. Update Octavo, or "
            "choose another model."
        )
