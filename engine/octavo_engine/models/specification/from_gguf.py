"""The specification of a model from the metadata of a GGUF file. Loads no torch.

Keys: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md and llama.cpp's gguf-py, constants.py; what is not
written in the file, llama.cpp's llama-model.cpp holds as constants, and so does this.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from octavo_engine.errors import ModelLoadError
from octavo_engine.models.files.stored import TensorInfo
from octavo_engine.models.specification.architecture import BY_GGUF_NAME, Architecture
from octavo_engine.models.specification.model_spec import MAX_LAYERS, ExpertSpec, ModelSpec
from octavo_engine.models.specification.rope_spec import RopeSpec
from octavo_engine.models.specification.stated_values import StatedValues, shown

# The largest models of these families scale their scores by the width of all heads, which no key of the file says.
_WIDE_SCALE = {("gemma2", 46), ("gemma3", 62)}
_LONG, _SHORT = "rope_factors_long.weight", "rope_factors_short.weight"
# Read into the specification itself.
SPECIFYING_TENSORS = frozenset({_LONG, _SHORT})


def gguf_specification(
    metadata: Mapping[str, Any], tensors: Mapping[str, TensorInfo], factors: Mapping[str, tuple[float, ...]]
) -> ModelSpec:
    """Read a specification; `check_specification` compares it with the tensors.

    Args:
        metadata: of the file.
        tensors: by name.
        factors: content of those tensors of `SPECIFYING_TENSORS` that the file has.

    Raises:
        ModelLoadError: an architecture or a variant that Octavo does not run, or a missing or absurd number.
    """
    architecture = _architecture(metadata)
    keys = StatedValues(metadata, source="The model file", prefix=f"{architecture.name}.")
    embedding = tensors.get("token_embd.weight")
    if embedding is None or len(embedding.shape) != 2:
        raise ModelLoadError("The model holds no token embedding. It may be one part of several; get the whole model.")
    layers = keys.number("block_count", int)
    if layers > MAX_LAYERS:
        raise keys.wrong("block_count")
    hidden = keys.number("embedding_length", int)
    heads = keys.number("attention.head_count", int)
    head_dim = keys.number("attention.key_length", int, max(1, hidden // heads))
    if keys.number("attention.value_length", int, head_dim) != head_dim:
        raise ModelLoadError("The model's keys and values differ in size, which this Octavo does not run.")
    context = keys.number("context_length", int)
    rope = _rope(keys, head_dim, context, factors)
    wide = (architecture.name, layers) in _WIDE_SCALE
    return ModelSpec(
        architecture=architecture,
        layers=layers,
        hidden=hidden,
        intermediate=keys.number("feed_forward_length", int, keys.optional("expert_feed_forward_length", int)),
        heads=heads,
        kv_heads=keys.number("attention.head_count_kv", int, heads),
        head_dim=head_dim,
        vocab_size=embedding.shape[0],
        context_length=rope.reach(context),
        epsilon=keys.number("attention.layer_norm_rms_epsilon", float),
        rope=rope,
        local_rope=_local_rope(architecture, keys, rope),
        rope_factors="rope_freqs.weight" in tensors,
        interleaved=architecture.gguf_interleaved,
        rotates=rotating_layers(architecture, layers),
        windows=_windows(architecture, keys, layers),
        attention_scale=keys.number("attention.scale", float, (hidden / heads if wide else head_dim) ** -0.5),
        score_cap=keys.number("attn_logit_softcapping", float, 50.0) if architecture.name == "gemma2" else 0.0,
        logit_cap=keys.number("final_logit_softcapping", float, 30.0) if architecture.name == "gemma2" else 0.0,
        embedding_scale=hidden**0.5 if architecture.scales_embedding else keys.number("embedding_scale", float, 1.0),
        residual_scale=keys.number("residual_scale", float, 1.0),
        logit_scale=1.0 / keys.number("logit_scale", float, 1.0),
        experts=_experts(keys, layers),
        tied_head="output.weight" not in tensors,
    )


def rotating_layers(architecture: Architecture, layers: int) -> tuple[bool, ...]:
    """For each layer, whether the architecture rotates there."""
    every = architecture.unrotated_every
    return tuple(not every or (layer + 1) % every != 0 for layer in range(layers))


def windowed_layers(architecture: Architecture, layers: int) -> tuple[bool, ...]:
    """For each layer, whether it has a window where the model states one."""
    every = architecture.full_attention_every
    return tuple(not every or (layer + 1) % every != 0 for layer in range(layers))


def _architecture(metadata: Mapping[str, Any]) -> Architecture:
    name = metadata.get("general.architecture")
    architecture = BY_GGUF_NAME.get(name) if isinstance(name, str) else None
    if architecture is None:
        raise ModelLoadError(
            f"The model's architecture is {shown(name)}. As a GGUF file this Octavo runs: "
            f"{', '.join(sorted(BY_GGUF_NAME))}."
        )
    return architecture


def _rope(keys: StatedValues, head_dim: int, context: int, factors: Mapping[str, tuple[float, ...]]) -> RopeSpec:
    width = keys.number("rope.dimension_count", int, head_dim)
    base = keys.number("rope.freq_base", float, 10_000.0)
    kind = keys.text("rope.scaling.type") or "none"
    original = keys.number("rope.scaling.original_context_length", int, context)
    if _LONG in factors and _SHORT in factors:
        return RopeSpec(
            width=width,
            base=base,
            kind="longrope",
            factor=context / original,
            original_context=original,
            attention_factor=keys.optional("rope.scaling.attn_factor", float),
            short_factors=factors[_SHORT],
            long_factors=factors[_LONG],
        )
    if kind == "none":
        return RopeSpec(width=width, base=base)
    factor = keys.number("rope.scaling.factor", float, 1.0)
    if kind == "linear":
        return RopeSpec(width=width, base=base, kind="linear", factor=factor)
    if kind == "yarn":
        stretch = keys.number(
            "rope.scaling.yarn_attn_factor", float, keys.number("rope.scaling.attn_factor", float, 1.0)
        )
        return RopeSpec(
            width=width,
            base=base,
            kind="yarn",
            factor=factor,
            original_context=original,
            # llama.cpp multiplies what the paper gives.
            attention_factor=stretch * (0.1 * math.log(factor) + 1.0),
            beta_fast=keys.number("rope.scaling.yarn_beta_fast", float, 32.0),
            beta_slow=keys.number("rope.scaling.yarn_beta_slow", float, 1.0),
        )
    raise ModelLoadError(f"The model scales its positions by {shown(kind)}, which this Octavo does not do.")


def _local_rope(architecture: Architecture, keys: StatedValues, rope: RopeSpec) -> RopeSpec | None:
    if architecture.local_rope_base is None:
        return None
    return RopeSpec(width=rope.width, base=keys.number("rope.freq_base_swa", float, architecture.local_rope_base))


def _windows(architecture: Architecture, keys: StatedValues, layers: int) -> tuple[int, ...]:
    window = keys.optional("attention.sliding_window", int) or 0
    windowed = keys.flags("attention.sliding_window_pattern", layers) or windowed_layers(architecture, layers)
    return tuple(window if has_window else 0 for has_window in windowed)


def _experts(keys: StatedValues, layers: int) -> ExpertSpec | None:
    count = keys.optional("expert_count", int)
    if count is None:
        return None
    return ExpertSpec(
        count=count,
        used=keys.number("expert_used_count", int),
        width=keys.number("expert_feed_forward_length", int, keys.optional("feed_forward_length", int)),
        normalises=True,
        layers=(True,) * layers,
    )
