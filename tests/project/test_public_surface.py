"""The engine's public names, pinned: programs outside this repository use them. A name may be added, never changed."""

from __future__ import annotations

import ast
import dataclasses
from pathlib import Path

import pytest

import octavo_engine

# Public dataclasses with their fields in order.
FIELDS = {
    "BenchReport": "suite scale machine parts",
    "Choice": "options",
    "Completion": "text reasoning tool_calls token_ids index reason stop seed usage timings logprobs siblings",
    "Delta": "index kind text token_ids logprobs call",
    "DeviceInfo": "name kind memory_total memory_free details",
    "Ebnf": "text",
    "EngineConfig": (
        "device dtype weights kv_dtype page_size kv_pages kv_memory host_pages page_store page_store_bytes "
        "max_batch_tokens max_running max_context policy preemption prefix_cache batch_invariant speculation "
        "draft_model threads chat_template ttft_goal tpot_goal adapters seed"
    ),
    "EngineStats": (
        "running waiting swapped steps tokens_per_second queue_p50 queue_p99 ttft_p50 ttft_p99 tpot_p50 "
        "tpot_p99 e2e_p50 e2e_p99 prefix_hit_rate preemptions swaps recomputes evictions copies_on_write "
        "pages sharing waste device_memory host_memory accepted_drafts joules_per_token kernel_backend "
        "disk_pages disk_bytes disk_problem stall energy_source energy_note"
    ),
    "Examination": "python platform packages devices kernels self_test energy",
    "Failed": "error",
    "FitReport": "verdict weights kv_per_token workspace free max_context",
    "Finished": "index reason stop usage timings",
    "GenerationRequest": (
        "messages prompt token_ids sampling priority owner parent continue_last tools tool_choice adapter "
        "template_options generation_prompt keep_on_disk"
    ),
    "IntegrityReport": "problems",
    "JsonSchema": "schema",
    "LoadProgress": "stage done total",
    "Message": "role content reasoning tool_calls tool_call_id name token_ids",
    "ModelInfo": (
        "path name architecture supported reason parameters quantization file_bytes context_length vocab_size "
        "layers chat_template features sampling_defaults license sizes runs_on"
    ),
    "PageInfo": "pool index state refcount filled last_used owners",
    "PageMap": "version pages pool state refcount filled last_used owner_starts owner_ids owner_names",
    "Preempted": "how",
    "PrefixNode": "id parent tokens pages owners last_used pool",
    "Progress": "computed total",
    "Regex": "pattern",
    "Resumed": "",
    "SamplingParams": (
        "temperature top_k top_p min_p typical_p top_n_sigma repetition_penalty presence_penalty "
        "frequency_penalty penalty_window dry_multiplier dry_base dry_allowed_length dry_breakers "
        "xtc_probability xtc_threshold mirostat_tau mirostat_eta dynatemp_range dynatemp_exponent order seed "
        "n max_tokens min_tokens stop stop_token_ids ignore_eos stop_on_loop logit_bias logprobs grammar "
        "reasoning_budget"
    ),
    "SequenceInfo": (
        "id owner priority state waiting_for prompt_tokens computed_tokens cached_tokens completion_tokens "
        "tokens_per_second ttft pages_private pages_shared"
    ),
    "Started": "id index seed prompt_tokens cached_tokens inherited_tokens",
    "Timings": "queued ttft tpot total",
    "TokenLogprob": "token_id logprob top",
    "ToolCallDelta": "index id name arguments",
    "Usage": "prompt_tokens cached_tokens completion_tokens",
    "Waiting": "reason position",
}
# Errors, protocols, functions and enums.
OTHERS = """
    ContextOverflow Engine EngineClosed EngineError Event FakeEngine GrammarError Handle InvalidRequest
    LoadCancelled ModelLoadError OnEvent OnProgress OutOfMemory Priority PromptTooLarge TemplateError
    Tokenizer cost_per_million_tokens devices draw_plots examine fit forget_stored inspect model_name run_bench
"""
# Defaults that callers rely on without naming them.
DEFAULTS = [
    (
        octavo_engine.SamplingParams(),
        {"temperature": 0.7, "top_k": 0, "top_p": 1.0, "n": 1, "seed": None, "max_tokens": None, "stop": ()},
    ),
    (
        octavo_engine.EngineConfig(),
        {"device": "auto", "page_size": 16, "max_batch_tokens": 2048, "policy": "priority", "batch_invariant": "auto"},
    ),
]
ERRORS = (
    "ContextOverflow EngineClosed GrammarError InvalidRequest LoadCancelled ModelLoadError OutOfMemory PromptTooLarge "
    "TemplateError"
)


def test_all_names_are_known_here() -> None:
    assert sorted(octavo_engine.__all__) == sorted([*FIELDS, *OTHERS.split()])
    assert list(octavo_engine.__all__) == sorted(octavo_engine.__all__)


@pytest.mark.parametrize("name", FIELDS)
def test_fields_keep_their_names_and_order(name: str) -> None:
    """New fields go to the end and have defaults."""
    kind = getattr(octavo_engine, name)
    names = [field.name for field in dataclasses.fields(kind)]
    expected = FIELDS[name].split()
    assert names[: len(expected)] == expected
    assert names == expected, "a field was added: pin it here"


@pytest.mark.parametrize("name", FIELDS)
def test_values_between_layers_cannot_be_changed(name: str) -> None:
    parameters = getattr(octavo_engine, name).__dataclass_params__
    assert parameters.frozen


@pytest.mark.parametrize(("value", "expected"), DEFAULTS)
def test_defaults_stay(value: object, expected: dict[str, object]) -> None:
    assert {name: getattr(value, name) for name in expected} == expected


@pytest.mark.parametrize("name", ERRORS.split())
def test_every_error_is_an_engine_error(name: str) -> None:
    assert issubclass(getattr(octavo_engine, name), octavo_engine.EngineError)


def test_priorities_are_ordered() -> None:
    priority = octavo_engine.Priority
    assert priority.INTERACTIVE > priority.NORMAL > priority.BACKGROUND


def test_application_uses_public_names_only(root: Path) -> None:
    """Modules of the engine below its top are its own business."""
    inner = []
    for path in (root / "app").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                modules = [node.module or ""]
                if node.module == "octavo_engine":
                    inner += [f"{path.name}: {a.name}" for a in node.names if a.name not in octavo_engine.__all__]
            inner += [f"{path.name}: {module}" for module in modules if module.startswith("octavo_engine.")]
    assert inner == []
