"""The specification of a model from the config.json of a Hugging Face folder. Loads neither torch nor transformers.

Keys: transformers' configuration classes; those of older files (`rope_scaling`, `rope_theta`) are read too.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from octavo_engine.errors import ModelLoadError
from octavo_engine.models.specification.architecture import BY_MODEL_TYPE, Architecture
from octavo_engine.models.specification.from_gguf import rotating_layers, windowed_layers
from octavo_engine.models.specification.model_spec import MAX_LAYERS, ExpertSpec, ModelSpec, Unsupported
from octavo_engine.models.specification.rope_spec import ROPE_KINDS, RopeSpec
from octavo_engine.models.specification.stated_values import StatedValues

_SOURCE = "The model's config.json"
_LOCAL = "sliding_attention"
_DEFAULTS: Mapping[str, Any] = {"max_position_embeddings": 2048, "rms_norm_eps": 1e-6, "rope_theta": 10_000.0}
_ACTIVATIONS = {"silu": "silu", "swish": "silu", "gelu_pytorch_tanh": "gelu_tanh"}


def config_specification(config: Mapping[str, Any]) -> ModelSpec:
    """Read a specification; `check_specification` compares it with the tensors.

    Raises:
        ModelLoadError: an architecture or a variant that Octavo's own decoder does not run, or an absurd number.
    """
    kind = config.get("model_type")
    architecture = BY_MODEL_TYPE.get(kind) if isinstance(kind, str) else None
    if architecture is None:
        raise Unsupported(
            f"The model's architecture is {kind!r}. Octavo's own decoder runs: {', '.join(sorted(BY_MODEL_TYPE))}."
        )
    if isinstance(config.get("text_config"), Mapping):
        # Models of text and pictures keep what the decoder needs apart.
        config = config["text_config"]
    keys = StatedValues({**_DEFAULTS, **architecture.config_defaults, **config}, source=_SOURCE)
    layers = keys.number("num_hidden_layers", int)
    if layers > MAX_LAYERS:
        raise keys.wrong("num_hidden_layers")
    hidden, heads = keys.number("hidden_size", int), keys.number("num_attention_heads", int)
    head_dim = keys.optional("head_dim", int) or max(1, hidden // heads)
    context = keys.number("max_position_embeddings", int)
    activation = keys.text("hidden_activation") or keys.text("hidden_act") or architecture.activation
    if _ACTIVATIONS.get(activation, activation) != architecture.activation:
        raise Unsupported(f"The model's activation is {activation!r}, which Octavo's own decoder does not run.")
    if keys.get("use_bidirectional_attention"):
        raise ModelLoadError("The model sees what comes later in a text, as encoders do; it writes no answers.")
    rope, local_rope = _ropes(architecture, keys, head_dim, context)
    scalar = keys.optional("query_pre_attn_scalar", float)
    return ModelSpec(
        architecture=architecture,
        layers=layers,
        hidden=hidden,
        intermediate=keys.number("intermediate_size", int),
        heads=heads,
        kv_heads=keys.optional("num_key_value_heads", int) or heads,
        head_dim=head_dim,
        vocab_size=keys.number("vocab_size", int),
        context_length=rope.reach(context),
        epsilon=keys.number("rms_norm_eps", float),
        rope=rope,
        local_rope=local_rope,
        rotates=_rotates(architecture, keys, layers),
        windows=_windows(architecture, keys, layers),
        attention_scale=keys.optional("attention_multiplier", float) or (scalar or head_dim) ** -0.5,
        score_cap=keys.optional("attn_logit_softcapping", float) or 0.0,
        logit_cap=keys.optional("final_logit_softcapping", float) or 0.0,
        embedding_scale=hidden**0.5
        if architecture.scales_embedding
        else keys.optional("embedding_multiplier", float) or 1.0,
        residual_scale=keys.optional("residual_multiplier", float) or 1.0,
        logit_scale=1.0 / (keys.optional("logits_scaling", float) or 1.0),
        experts=_experts(architecture, keys, layers),
        tied_head=bool(keys.get("tie_word_embeddings")),
    )


def _ropes(
    architecture: Architecture, keys: StatedValues, head_dim: int, context: int
) -> tuple[RopeSpec, RopeSpec | None]:
    """The rotation of layers that see everything, and that of layers with a window where it is another."""
    parameters = keys.get("rope_parameters") or {}
    if not isinstance(parameters, Mapping):
        raise keys.wrong("rope_parameters")
    if _LOCAL in parameters or "full_attention" in parameters:
        both = [_rope(keys, parameters.get(name) or {}, head_dim, context) for name in ("full_attention", _LOCAL)]
        return both[0], both[1]
    rope = _rope(keys, parameters or keys.get("rope_scaling") or {}, head_dim, context)
    if architecture.local_rope_base is None:
        return rope, None
    base = keys.optional("rope_local_base_freq", float) or architecture.local_rope_base
    return rope, RopeSpec(width=rope.width, base=base)


def _rope(keys: StatedValues, stated: Mapping[str, Any], head_dim: int, context: int) -> RopeSpec:
    given = StatedValues(stated, source=_SOURCE)
    kind = given.text("rope_type") or given.text("type") or "default"
    # An older name of the same.
    kind = "longrope" if kind == "su" else kind
    if kind not in ROPE_KINDS:
        raise Unsupported(f"The model scales its positions by {kind!r}, which Octavo's own decoder does not do.")
    part = given.optional("partial_rotary_factor", float) or keys.optional("partial_rotary_factor", float) or 1.0
    base = given.optional("rope_theta", float) or keys.number("rope_theta", float)
    spec = RopeSpec(width=int(head_dim * part), base=base, kind=kind)
    if kind == "default":
        return spec
    original = (
        keys.optional("original_max_position_embeddings", int)
        or given.optional("original_max_position_embeddings", int)
        or context
    )
    factor = given.optional("factor", float) or context / original
    spec = dataclasses.replace(spec, factor=factor, original_context=original)
    if kind == "llama3":
        return dataclasses.replace(
            spec,
            low_frequency=given.number("low_freq_factor", float),
            high_frequency=given.number("high_freq_factor", float),
        )
    if kind == "yarn":
        return dataclasses.replace(
            spec,
            attention_factor=given.optional("attention_factor", float) or _mscale_ratio(given, factor),
            beta_fast=given.optional("beta_fast", float) or 32.0,
            beta_slow=given.optional("beta_slow", float) or 1.0,
            truncates=given.get("truncate") is not False,
        )
    if kind == "longrope":
        return dataclasses.replace(
            spec,
            attention_factor=given.optional("attention_factor", float),
            short_factors=given.numbers("short_factor", spec.width // 2),
            long_factors=given.numbers("long_factor", spec.width // 2),
        )
    return spec


def _mscale_ratio(given: StatedValues, factor: float) -> float | None:
    over, under = given.optional("mscale", float), given.optional("mscale_all_dim", float)
    if over is None or under is None or factor <= 1:
        return None
    return (0.1 * over * math.log(factor) + 1) / (0.1 * under * math.log(factor) + 1)


def _rotates(architecture: Architecture, keys: StatedValues, layers: int) -> tuple[bool, ...]:
    stated = keys.get("no_rope_layers")
    if isinstance(stated, list) and len(stated) == layers:
        # Despite its name, 1 says that a layer rotates.
        return tuple(bool(entry) for entry in stated)
    every = keys.optional("no_rope_layer_interval", int) or architecture.unrotated_every
    return rotating_layers(dataclasses.replace(architecture, unrotated_every=every), layers)


def _windows(architecture: Architecture, keys: StatedValues, layers: int) -> tuple[int, ...]:
    window = keys.optional("sliding_window", int) or 0
    # Where the switch exists, it is off unless stated.
    if keys.get("use_sliding_window") is False or (
        architecture.name in ("qwen2", "qwen3", "qwen3moe", "smollm3") and not keys.get("use_sliding_window")
    ):
        window = 0
    kinds = keys.get("layer_types")
    if isinstance(kinds, list) and len(kinds) == layers:
        windowed = tuple(kind == _LOCAL for kind in kinds)
    elif keys.optional("max_window_layers", int) is not None:
        windowed = tuple(layer >= keys.number("max_window_layers", int) for layer in range(layers))
    else:
        windowed = windowed_layers(architecture, layers)
    return tuple(window if has_window else 0 for has_window in windowed)


def _experts(architecture: Architecture, keys: StatedValues, layers: int) -> ExpertSpec | None:
    count = keys.optional("num_local_experts", int) or keys.optional("num_experts", int)
    if count is None:
        return None
    step = keys.optional("decoder_sparse_step", int) or 1
    dense = keys.get("mlp_only_layers") or ()
    normalises = keys.get("norm_topk_prob")
    return ExpertSpec(
        count=count,
        used=keys.number("num_experts_per_tok", int),
        width=keys.optional("moe_intermediate_size", int) or keys.number("intermediate_size", int),
        normalises=architecture.normalises_experts if normalises is None else bool(normalises),
        layers=tuple(layer not in dense and (layer + 1) % step == 0 for layer in range(layers)),
    )
