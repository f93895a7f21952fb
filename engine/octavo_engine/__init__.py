"""Octavo's inference engine: paged KV cache and continuous batching, inside the process.

Importing this package loads neither torch nor numba nor transformers; `Engine.open` does.
"""

from octavo_engine.api import Engine, Handle, OnEvent, OnProgress, Tokenizer
from octavo_engine.bench.plots import draw_plots
from octavo_engine.bench.report import BenchReport
from octavo_engine.bench.suite import run_bench
from octavo_engine.config import EngineConfig
from octavo_engine.devices import devices
from octavo_engine.doctor import Examination, examine
from octavo_engine.energy.cost import cost_per_million_tokens
from octavo_engine.errors import (
    ContextOverflow,
    EngineClosed,
    EngineError,
    GrammarError,
    InvalidRequest,
    LoadCancelled,
    ModelLoadError,
    OutOfMemory,
    PromptTooLarge,
    TemplateError,
)
from octavo_engine.events import (
    Completion,
    Delta,
    Event,
    Failed,
    Finished,
    Preempted,
    Progress,
    Resumed,
    Started,
    Timings,
    TokenLogprob,
    ToolCallDelta,
    Usage,
    Waiting,
)
from octavo_engine.fake_engine import FakeEngine
from octavo_engine.fitting import FitReport, fit
from octavo_engine.inspection import inspect
from octavo_engine.model_info import ModelInfo, model_name
from octavo_engine.page_map import PageInfo, PageMap
from octavo_engine.page_store.page_store import forget_stored
from octavo_engine.request import (
    Choice,
    Ebnf,
    GenerationRequest,
    JsonSchema,
    Message,
    Priority,
    Regex,
    SamplingParams,
)
from octavo_engine.stats import DeviceInfo, EngineStats, IntegrityReport, LoadProgress, PrefixNode, SequenceInfo

__all__ = [
    "BenchReport",
    "Choice",
    "Completion",
    "ContextOverflow",
    "Delta",
    "DeviceInfo",
    "Ebnf",
    "Engine",
    "EngineClosed",
    "EngineConfig",
    "EngineError",
    "EngineStats",
    "Event",
    "Examination",
    "Failed",
    "FakeEngine",
    "Finished",
    "FitReport",
    "GenerationRequest",
    "GrammarError",
    "Handle",
    "IntegrityReport",
    "InvalidRequest",
    "JsonSchema",
    "LoadCancelled",
    "LoadProgress",
    "Message",
    "ModelInfo",
    "ModelLoadError",
    "OnEvent",
    "OnProgress",
    "OutOfMemory",
    "PageInfo",
    "PageMap",
    "Preempted",
    "PrefixNode",
    "Priority",
    "Progress",
    "PromptTooLarge",
    "Regex",
    "Resumed",
    "SamplingParams",
    "SequenceInfo",
    "Started",
    "TemplateError",
    "Timings",
    "TokenLogprob",
    "Tokenizer",
    "ToolCallDelta",
    "Usage",
    "Waiting",
    "cost_per_million_tokens",
    "devices",
    "draw_plots",
    "examine",
    "fit",
    "forget_stored",
    "inspect",
    "model_name",
    "run_bench",
]
