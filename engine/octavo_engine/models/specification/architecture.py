"""The families of decoders that Octavo computes: a table of flags and names. Another family is another entry.

Names of tensors are those of GGUF (llama.cpp's gguf-py, constants.py); `hugging_face_names` gives their other names.
Knows no sizes and no files; loads no torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

_PRE_NORMS = MappingProxyType({"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm"})
_POST_NORMS = MappingProxyType(
    {"post_attention_norm": "post_attention_layernorm", "post_ffw_norm": "post_feedforward_layernorm"}
)
_BOTH_NORMS = MappingProxyType(
    {"attn_norm": "input_layernorm", "ffn_norm": "pre_feedforward_layernorm", **_POST_NORMS},
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """A family of decoders.

    Attributes:
        name: what it is called; in GGUF's `general.architecture` too, and before the keys of its metadata.
        gguf: whether GGUF knows it by this name.
        model_types: as in the `model_type` of config.json.
        norms: the normalisations of a layer and their names in Hugging Face checkpoints.
        head_norms: "head": each query and key head is normalised; "row": all heads of a token together.
        activation: of the gate.
        gguf_interleaved: GGUF keeps the rows of q and k in the order that rotates neighbours (llama.cpp's permutation).
        norm_offset: what Hugging Face checkpoints leave out of the norms' weights.
        scales_embedding: embeddings are multiplied by the square root of their width.
        fused: q, k and v are one matrix, gate and up another.
        biased: tensors of a layer that must have a bias; others may.
        full_attention_every: which layers see everything where the model has a window: every n-th; 0 for none.
        local_rope_base: base of the rotary frequencies of layers with a window, where they have another.
        unrotated_every: every n-th layer does not rotate; 0 for none.
        normalises_experts: where config.json is silent, the weights of the chosen experts are made to add up to 1.
        expert_names: block, gate, up and down of Hugging Face's experts.
        config_defaults: what config.json leaves out.
    """

    name: str
    model_types: tuple[str, ...]
    gguf: bool = True
    norms: Mapping[str, str] = field(default_factory=lambda: _PRE_NORMS)
    head_norms: Literal["", "head", "row"] = ""
    activation: Literal["silu", "gelu_tanh"] = "silu"
    gguf_interleaved: bool = False
    norm_offset: float = 0.0
    scales_embedding: bool = False
    fused: bool = False
    biased: tuple[str, ...] = ()
    full_attention_every: int = 0
    local_rope_base: float | None = None
    unrotated_every: int = 0
    normalises_experts: bool = True
    expert_names: tuple[str, str, str, str] = ("mlp", "gate_proj", "up_proj", "down_proj")
    config_defaults: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))


_GEMMA_DEFAULTS = {"head_dim": 256, "query_pre_attn_scalar": 256, "sliding_window": 4096, "tie_word_embeddings": True}

ARCHITECTURES: tuple[Architecture, ...] = (
    Architecture(name="llama", model_types=("llama",), gguf_interleaved=True),
    # In GGUF both are called llama.
    Architecture(name="mistral", model_types=("mistral",), gguf=False, config_defaults={"sliding_window": 4096}),
    Architecture(
        name="mixtral",
        model_types=("mixtral",),
        gguf=False,
        expert_names=("block_sparse_moe", "w1", "w3", "w2"),
        config_defaults={"num_experts": 8, "num_experts_per_tok": 2, "rope_theta": 1_000_000.0},
    ),
    Architecture(name="qwen2", model_types=("qwen2",), biased=("attn_q", "attn_k", "attn_v")),
    Architecture(name="qwen3", model_types=("qwen3",), head_norms="head", config_defaults={"head_dim": 128}),
    Architecture(
        name="qwen3moe",
        model_types=("qwen3_moe",),
        head_norms="head",
        normalises_experts=False,
        config_defaults={"num_experts_per_tok": 8, "moe_intermediate_size": 768, "num_experts": 128},
    ),
    Architecture(
        name="gemma2",
        model_types=("gemma2",),
        norms=_BOTH_NORMS,
        activation="gelu_tanh",
        norm_offset=1.0,
        scales_embedding=True,
        full_attention_every=2,
        config_defaults=_GEMMA_DEFAULTS | {"attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0},
    ),
    Architecture(
        name="gemma3",
        model_types=("gemma3_text", "gemma3"),
        norms=_BOTH_NORMS,
        head_norms="head",
        activation="gelu_tanh",
        norm_offset=1.0,
        scales_embedding=True,
        full_attention_every=6,
        local_rope_base=10_000.0,
        # Older files with pictures state little of their text part.
        config_defaults=_GEMMA_DEFAULTS
        | {
            "rope_theta": 1_000_000.0,
            "max_position_embeddings": 131_072,
            "num_attention_heads": 8,
            "num_key_value_heads": 4,
            "vocab_size": 262_208,
        },
    ),
    Architecture(name="phi3", model_types=("phi3",), fused=True),
    Architecture(
        name="smollm3",
        model_types=("smollm3",),
        gguf_interleaved=True,
        unrotated_every=4,
        config_defaults={"tie_word_embeddings": True, "rope_theta": 2_000_000.0},
    ),
    Architecture(name="granite", model_types=("granite",), gguf_interleaved=True),
    Architecture(name="olmo2", model_types=("olmo2",), norms=_POST_NORMS, head_norms="row"),
)

BY_GGUF_NAME: Mapping[str, Architecture] = MappingProxyType(
    {entry.name: entry for entry in ARCHITECTURES if entry.gguf}
)
BY_MODEL_TYPE: Mapping[str, Architecture] = MappingProxyType(
    {kind: entry for entry in ARCHITECTURES for kind in entry.model_types}
)
