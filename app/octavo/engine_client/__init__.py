"""The one place of the application that imports the engine; the rest takes what it needs of it from here."""

from octavo.engine_client.client import EngineClient
from octavo.engine_client.scripted import ScriptError, scripted_engine
from octavo.engine_client.status import EngineStatus, Phase
from octavo_engine import (
    Delta,
    Engine,
    EngineConfig,
    EngineError,
    EngineStats,
    Event,
    Failed,
    FakeEngine,
    Finished,
    GenerationRequest,
    InvalidRequest,
    LoadProgress,
    Message,
    ModelInfo,
    ModelLoadError,
    SamplingParams,
    SequenceInfo,
    devices,
    inspect,
)

__all__ = [
    "Delta",
    "Engine",
    "EngineClient",
    "EngineConfig",
    "EngineError",
    "EngineStats",
    "EngineStatus",
    "Event",
    "Failed",
    "FakeEngine",
    "Finished",
    "GenerationRequest",
    "InvalidRequest",
    "LoadProgress",
    "Message",
    "ModelInfo",
    "ModelLoadError",
    "Phase",
    "SamplingParams",
    "ScriptError",
    "SequenceInfo",
    "devices",
    "inspect",
    "scripted_engine",
]
