"""Small random models of every family that the decoder computes, as transformers models and as GGUF files.

The writer takes names and keys from the `gguf` package and transformers' own numbers, not from Octavo.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from transformers import (
    Gemma2Config,
    Gemma3TextConfig,
    GraniteConfig,
    LlamaConfig,
    MistralConfig,
    MixtralConfig,
    Olmo2Config,
    Phi3Config,
    PreTrainedConfig,
    PreTrainedModel,
    Qwen2Config,
    Qwen3Config,
    Qwen3MoeConfig,
    SmolLM3Config,
)
from transformers.models.auto.modeling_auto import AutoModelForCausalLM

VOCABULARY = 96
CONTEXT = 256
WINDOW = 24
_SIZES: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": CONTEXT,
    "attn_implementation": "eager",
    "pad_token_id": 0,
}


@dataclass(frozen=True)
class Family:
    """A model to make and how GGUF says it.

    Attributes:
        config: makes the configuration from sizes.
        changes: what differs from the common sizes.
        architecture: of GGUF; empty where GGUF has no way to say it.
        permuted: GGUF interleaves the rows of q and k.
        metadata: keys that only this family has, without the architecture's name.
    """

    config: type[PreTrainedConfig]
    changes: dict[str, Any] = field(default_factory=dict)
    architecture: str = ""
    permuted: bool = False
    metadata: dict[str, Any] = field(default_factory=dict)


_LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 500.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}
_YARN = {"rope_type": "yarn", "rope_theta": 1000.0, "factor": 4.0, "original_max_position_embeddings": 64}
_LINEAR = {"rope_type": "linear", "rope_theta": 10_000.0, "factor": 4.0}
_YARN_KEYS = {
    "rope.scaling.type": "yarn",
    "rope.scaling.factor": 4.0,
    "rope.scaling.original_context_length": 64,
    "rope.freq_base": 1000.0,
}
_LONGROPE = {
    "rope_type": "longrope",
    "rope_theta": 10_000.0,
    "short_factor": [1.0, 1.1, 1.2, 1.4, 1.6, 1.8, 2.0, 2.4],
    "long_factor": [1.0, 2.0, 3.0, 5.0, 8.0, 12.0, 20.0, 30.0],
}
_GEMMA = {"head_dim": 24, "query_pre_attn_scalar": 24, "sliding_window": WINDOW}
_GEMMA_KEYS = {"attention.key_length": 24, "attention.value_length": 24, "attention.sliding_window": WINDOW}
_EXPERTS = {"num_experts_per_tok": 2, "num_hidden_layers": 2}

FAMILIES: dict[str, Family] = {
    "llama": Family(LlamaConfig, {"tie_word_embeddings": True}, "llama", permuted=True),
    "llama-mha-untied": Family(LlamaConfig, {"num_key_value_heads": 4}, "llama", permuted=True),
    "llama-mqa-biased": Family(
        LlamaConfig,
        {"num_key_value_heads": 1, "attention_bias": True, "mlp_bias": True},
        "llama",
        permuted=True,
    ),
    "llama-3": Family(LlamaConfig, {"rope_parameters": _LLAMA3}, "llama", True, {"rope.freq_base": 500.0}),
    "llama-linear": Family(
        LlamaConfig,
        {"rope_parameters": _LINEAR},
        "llama",
        True,
        {"rope.scaling.type": "linear", "rope.scaling.factor": 4.0},
    ),
    "llama-dynamic": Family(
        LlamaConfig,
        {
            "rope_parameters": {"rope_type": "dynamic", "rope_theta": 10_000.0, "factor": 4.0},
            "max_position_embeddings": 40,
        },
    ),
    "llama-yarn": Family(LlamaConfig, {"rope_parameters": _YARN}, "llama", True, _YARN_KEYS),
    "mistral": Family(MistralConfig, {"sliding_window": WINDOW}, "llama", True, {"attention.sliding_window": WINDOW}),
    "mistral-whole": Family(MistralConfig, {"sliding_window": None}, "llama", True),
    "qwen2": Family(Qwen2Config, {"tie_word_embeddings": True}, "qwen2"),
    "qwen2-window": Family(Qwen2Config, {"use_sliding_window": True, "sliding_window": WINDOW, "max_window_layers": 2}),
    "qwen3": Family(
        Qwen3Config, {"head_dim": 24}, "qwen3", False, {"attention.key_length": 24, "attention.value_length": 24}
    ),
    "qwen3-yarn": Family(
        Qwen3Config,
        {"head_dim": 24, "rope_parameters": _YARN},
        "qwen3",
        False,
        {"attention.key_length": 24, "attention.value_length": 24} | _YARN_KEYS,
    ),
    "gemma2": Family(
        Gemma2Config,
        _GEMMA,
        "gemma2",
        False,
        _GEMMA_KEYS | {"attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0},
    ),
    "gemma3": Family(
        Gemma3TextConfig,
        _GEMMA
        | {
            "num_hidden_layers": 6,
            "rope_parameters": {
                "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1_000_000.0},
                "sliding_attention": {"rope_type": "default", "rope_theta": 10_000.0},
            },
        },
        "gemma3",
        False,
        _GEMMA_KEYS | {"rope.freq_base": 1_000_000.0, "rope.scaling.type": "linear", "rope.scaling.factor": 8.0},
    ),
    "phi3": Family(Phi3Config, {"sliding_window": WINDOW}, "phi3", False, {"attention.sliding_window": WINDOW}),
    "phi3-longrope": Family(
        Phi3Config,
        {"rope_parameters": _LONGROPE, "original_max_position_embeddings": 48},
        "phi3",
        False,
        {
            "rope.scaling.original_context_length": 48,
            "rope.scaling.attn_factor": float(np.sqrt(1 + np.log(CONTEXT / 48) / np.log(48))),
        },
    ),
    "phi3-partial": Family(
        Phi3Config,
        {"rope_parameters": {"rope_type": "default", "rope_theta": 10_000.0, "partial_rotary_factor": 0.5}},
        "phi3",
        False,
        {"rope.dimension_count": 8},
    ),
    "smollm3": Family(SmolLM3Config, {"rope_theta": 10_000.0}, "smollm3", True),
    "granite": Family(
        GraniteConfig,
        {
            "embedding_multiplier": 12.0,
            "logits_scaling": 8.0,
            "residual_multiplier": 0.22,
            "attention_multiplier": 0.1,
        },
        "granite",
        True,
        {"embedding_scale": 12.0, "logit_scale": 8.0, "residual_scale": 0.22, "attention.scale": 0.1},
    ),
    "olmo2": Family(Olmo2Config, {}, "olmo2"),
    "mixtral": Family(
        MixtralConfig,
        _EXPERTS | {"num_local_experts": 4, "rope_parameters": {"rope_type": "default", "rope_theta": 10_000.0}},
        "llama",
        True,
        {"expert_count": 4, "expert_used_count": 2},
    ),
    "qwen3-moe": Family(
        Qwen3MoeConfig,
        _EXPERTS | {"head_dim": 24, "num_experts": 5, "moe_intermediate_size": 32, "norm_topk_prob": True},
        "qwen3moe",
        False,
        {
            "attention.key_length": 24,
            "attention.value_length": 24,
            "expert_count": 5,
            "expert_used_count": 2,
            "expert_feed_forward_length": 32,
        },
    ),
    "qwen3-moe-mixed": Family(
        Qwen3MoeConfig,
        _EXPERTS
        | {
            "head_dim": 24,
            "num_experts": 5,
            "moe_intermediate_size": 32,
            "mlp_only_layers": [0],
            "norm_topk_prob": False,
        },
    ),
}


def tiny_model(name: str, **changes: Any) -> PreTrainedModel:
    """A random model of a family, in float32."""
    family = FAMILIES[name]
    torch.manual_seed(sum(map(ord, name)))
    model = AutoModelForCausalLM.from_config(family.config(**(_SIZES | family.changes | changes))).eval().float()
    for parameter in model.parameters():
        parameter.data.normal_(0, 0.08) if parameter.dim() > 1 else parameter.data.uniform_(0.5, 1.5)
    return model


def write_gguf(
    model: PreTrainedModel,
    name: str,
    path: Path,
    *,
    kind: gguf.GGMLQuantizationType,
    tensors_per_file: int = 0,
    **changes: Any,
) -> None:
    """Write a model with its matrices stored as `kind`; `changes` replace metadata, 0 tensors a file keep it whole."""
    family, config = FAMILIES[name], model.config
    writer = gguf.GGUFWriter(path, family.architecture, split_max_tensors=tensors_per_file)
    width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    metadata = (
        {
            "context_length": config.max_position_embeddings,
            "embedding_length": config.hidden_size,
            "feed_forward_length": config.intermediate_size,
            "block_count": config.num_hidden_layers,
            "attention.head_count": config.num_attention_heads,
            "attention.head_count_kv": config.num_key_value_heads,
            "attention.layer_norm_rms_epsilon": float(config.rms_norm_eps),
            "rope.dimension_count": width,
            "rope.freq_base": 10_000.0,
        }
        | family.metadata
        | changes
    )
    add: dict[type, Callable[[str, Any], None]] = {
        int: writer.add_uint32,
        float: writer.add_float32,
        str: writer.add_string,
    }
    for key, value in metadata.items():
        add[type(value)](f"{family.architecture}.{key}", value)
    for tensor, values in gguf_tensors(model, name).items():
        stored = kind if values.ndim > 1 and values.shape[-1] % 32 == 0 else gguf.GGMLQuantizationType.F32
        if "gate_inp" in tensor:
            stored = gguf.GGMLQuantizationType.F32
        writer.add_tensor(tensor, gguf.quants.quantize(values, stored), raw_dtype=stored)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def gguf_tensors(model: PreTrainedModel, name: str) -> dict[str, np.ndarray]:
    """The weights of a model by their names in GGUF, in the order of rows that GGUF has."""
    family, config = FAMILIES[name], model.config
    architecture = next(key for key, value in gguf.MODEL_ARCH_NAMES.items() if value == family.architecture)
    names = gguf.get_tensor_name_map(architecture, config.num_hidden_layers)
    written: dict[str, np.ndarray] = {}
    for theirs, parameter in model.state_dict().items():
        values = parameter.detach().float().numpy()
        if theirs == "lm_head.weight" and config.tie_word_embeddings:
            continue
        if theirs.endswith(("q_proj.weight", "q_proj.bias")) and family.permuted:
            values = permuted(values, config.num_attention_heads)
        if theirs.endswith(("k_proj.weight", "k_proj.bias")) and family.permuted:
            values = permuted(values, config.num_key_value_heads)
        if theirs.endswith("norm.weight") and family.architecture.startswith("gemma"):
            values = values + 1
        if theirs.endswith("experts.gate_up_proj"):
            layer = theirs.split(".")[2]
            gates, ups = np.split(values, 2, axis=1)
            written[f"blk.{layer}.ffn_gate_exps.weight"], written[f"blk.{layer}.ffn_up_exps.weight"] = gates, ups
        elif theirs.endswith("experts.down_proj"):
            written[f"blk.{theirs.split('.')[2]}.ffn_down_exps.weight"] = values
        else:
            ours = names.get_name(theirs, try_suffixes=(".weight", ".bias"))
            assert ours is not None, theirs
            written[ours] = values
    return written | _rope_tensors(model)


def _rope_tensors(model: PreTrainedModel) -> dict[str, np.ndarray]:
    """The factors that GGUF keeps as tensors."""
    rope = model.config.rope_parameters
    if rope.get("rope_type") == "longrope":
        return {
            f"rope_factors_{which}.weight": np.asarray(rope[f"{which}_factor"], np.float32)
            for which in ("long", "short")
        }
    if rope.get("rope_type") == "llama3":
        stretched = model.model.rotary_emb.inv_freq
        width = 2 * len(stretched)
        plain = 1.0 / rope["rope_theta"] ** (torch.arange(0, width, 2) / width)
        return {"rope_freqs.weight": (plain / stretched).numpy()}
    return {}


def permuted(values: np.ndarray, heads: int) -> np.ndarray:
    """Rows of q or k in the order of llama.cpp: the two halves of each head in turns."""
    return values.reshape(heads, 2, values.shape[0] // heads // 2, -1).swapaxes(1, 2).reshape(values.shape)


def rounded(model: PreTrainedModel, name: str, kind: gguf.GGMLQuantizationType) -> PreTrainedModel:
    """The model with its matrices rounded to `kind`: rounding works along rows, so permuted rows round alike."""
    stored = {
        key for key, values in gguf_tensors(model, name).items() if values.ndim > 1 and values.shape[-1] % 32 == 0
    }
    assert stored
    for theirs, parameter in model.named_parameters():
        if parameter.dim() > 1 and parameter.shape[-1] % 32 == 0 and not theirs.endswith("mlp.gate.weight"):
            values = gguf.quants.dequantize(gguf.quants.quantize(parameter.detach().numpy(), kind), kind)
            parameter.data = torch.from_numpy(values.astype(np.float32).reshape(parameter.shape).copy())
    if model.config.tie_word_embeddings:
        model.tie_weights()
    return model


def reference(model: PreTrainedModel, tokens: list[int]) -> torch.Tensor:
    """Logits of all positions by transformers, float32 [tokens, vocabulary]."""
    with torch.inference_mode():
        logits: torch.Tensor = model(torch.tensor([tokens]), use_cache=False).logits[0]
    return logits
