"""Checks of requests and settings that need no model: value ranges, and what this version does not do."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

from octavo_engine.config import EngineConfig
from octavo_engine.errors import InvalidRequest
from octavo_engine.policy import policy_named
from octavo_engine.request import GenerationRequest, Message, SamplingParams

# What the fixed interface names and this version does not do: field -> words for people.
_SAMPLING_LATER = {
    "min_p": "min-p sampling",
    "typical_p": "typical sampling",
    "top_n_sigma": "top-n-sigma sampling",
    "repetition_penalty": "repetition penalties",
    "presence_penalty": "presence penalties",
    "frequency_penalty": "frequency penalties",
    "penalty_window": "penalties",
    "dry_multiplier": "the DRY penalty",
    "dry_base": "the DRY penalty",
    "dry_allowed_length": "the DRY penalty",
    "dry_breakers": "the DRY penalty",
    "xtc_probability": "XTC sampling",
    "xtc_threshold": "XTC sampling",
    "mirostat_tau": "mirostat sampling",
    "mirostat_eta": "mirostat sampling",
    "dynatemp_range": "dynamic temperature",
    "dynatemp_exponent": "dynamic temperature",
    "order": "other orders of the sampling steps",
    "min_tokens": "a least number of tokens",
    "stop": "stop texts",
    "stop_on_loop": "loop detection",
    "logit_bias": "logit biases",
    "logprobs": "log-probabilities",
    "grammar": "structured output",
    "reasoning_budget": "a budget for reasoning",
}
_REQUEST_LATER = {
    "continue_last": "continuing an answer",
    "tools": "tools",
    "tool_choice": "tools",
    "adapter": "adapters",
}
_CONFIG_LATER = {
    "draft_model": "draft models",
    "adapters": "adapters",
}
_CHANGEABLE = (
    "policy",
    "preemption",
    "max_batch_tokens",
    "max_running",
    "kv_pages",
    "host_pages",
    "prefix_cache",
    "ttft_goal",
    "tpot_goal",
)


def _refuse_later(value: Any, later: dict[str, str]) -> None:
    defaults = type(value)()
    for name, words in later.items():
        if getattr(value, name) != getattr(defaults, name):
            raise InvalidRequest(f"This version of Octavo does not know {words}; leave {name} at its default.")


def _require(condition: bool, name: str, value: object, allowed: str) -> None:
    if not condition:
        raise InvalidRequest(f"{name} is {value!r}; it must be {allowed}.")


def _is_count(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def check_sampling(sampling: SamplingParams) -> None:
    """Check ranges.

    Raises:
        InvalidRequest: a value out of its range, which the message names, or not of this version.
    """
    _refuse_later(sampling, _SAMPLING_LATER)
    temperature = sampling.temperature
    _require(math.isfinite(temperature) and temperature >= 0, "temperature", temperature, "a number of at least 0")
    _require(_is_count(sampling.top_k, 0), "top_k", sampling.top_k, "a whole number, 0 for no limit")
    _require(0 < sampling.top_p <= 1, "top_p", sampling.top_p, "above 0 and at most 1")
    _require(sampling.seed is None or _is_count(sampling.seed, 0), "seed", sampling.seed, "a whole number or None")
    _require(_is_count(sampling.n, 1), "n", sampling.n, "a whole number of at least 1")
    tokens = sampling.max_tokens
    _require(tokens is None or _is_count(tokens, 0), "max_tokens", tokens, "a whole number or None")


def check_request(request: GenerationRequest) -> None:
    """Check what can be refused without the model.

    Raises:
        InvalidRequest: no prompt or more than one, nothing to answer, or a parameter out of range.
    """
    _refuse_later(request, _REQUEST_LATER)
    given = [name for name in ("messages", "prompt", "token_ids") if getattr(request, name) is not None]
    if len(given) != 1:
        raise InvalidRequest("A request needs exactly one of messages, prompt and token_ids.")
    if not len(getattr(request, given[0])):
        raise InvalidRequest("The prompt is empty; there is nothing to answer.")
    if request.messages is not None:
        last = [_checked(Message.of(message)) for message in request.messages][-1]
        if last.role == "user" and not str(last.content).strip():
            raise InvalidRequest("The last message is empty; there is nothing to answer.")
    check_sampling(request.sampling)


def _checked(message: Message) -> Message:
    if not isinstance(message.content, str):
        raise InvalidRequest("This version of Octavo takes text only; give each message's content as text.")
    if message.tool_calls or message.tool_call_id is not None:
        raise InvalidRequest("This version of Octavo does not know tools; leave tool calls out of the messages.")
    return message


def check_config(config: EngineConfig) -> None:
    """Check an engine's settings.

    Raises:
        InvalidRequest: a value out of its range, or not of this version.
    """
    _refuse_later(config, _CONFIG_LATER)
    _require(config.device in ("auto", "cpu"), "device", config.device, '"auto" or "cpu"')
    _require(config.dtype == "auto", "dtype", config.dtype, '"auto"; set weights and kv_dtype instead')
    _require(config.kv_dtype in ("auto", "bfloat16", "float32"), "kv_dtype", config.kv_dtype, "auto, bfloat16, float32")
    layouts = ("auto", "bfloat16", "float32", "int8", "int4")
    _require(config.weights in layouts, "weights", config.weights, f"one of {', '.join(layouts)}")
    _require(config.speculation in ("auto", "off"), "speculation", config.speculation, '"auto" or "off"')
    _require(config.page_size == 16, "page_size", config.page_size, "16")
    for name in ("kv_pages", "kv_memory", "page_store_bytes", "max_context", "threads"):
        value = getattr(config, name)
        _require(value is None or _is_count(value, 1), name, value, "a whole number of at least 1 or None")
    _require(
        config.host_pages is None or _is_count(config.host_pages, 0), "host_pages", config.host_pages, "at least 0"
    )
    for name in ("max_batch_tokens", "max_running"):
        _require(_is_count(getattr(config, name), 1), name, getattr(config, name), "a whole number of at least 1")
    policy_named(config.policy)
    for name in ("ttft_goal", "tpot_goal"):
        goal = getattr(config, name)
        is_time = goal is None or (isinstance(goal, int | float) and math.isfinite(goal) and goal > 0)
        _require(is_time, name, goal, "seconds above 0 or None")
    ways = ("auto", "swap", "recompute")
    _require(config.preemption in ways, "preemption", config.preemption, f"one of {', '.join(ways)}")
    if config.preemption == "swap" and not config.host_pages:
        raise InvalidRequest('preemption="swap" needs a host pool; set host_pages too, or leave preemption at "auto".')


def configured(config: EngineConfig, changes: dict[str, object]) -> EngineConfig:
    """The settings with `changes`, checked.

    Raises:
        InvalidRequest: a setting that cannot change while the engine runs, or a value out of range.
    """
    for name in changes:
        if name not in _CHANGEABLE:
            raise InvalidRequest(f"{name} cannot change while the engine runs; {', '.join(_CHANGEABLE)} can.")
    values = {f.name: getattr(config, f.name) for f in fields(config)} | changes
    changed = EngineConfig(**values)
    check_config(changed)
    return changed
