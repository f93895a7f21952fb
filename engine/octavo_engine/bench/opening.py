"""Opens the engine that a benchmark measures, and says what it is measured on."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from octavo_engine.api import Engine
from octavo_engine.config import EngineConfig
from octavo_engine.devices import devices
from octavo_engine.local_engine import LocalEngine

OpenEngine = Callable[..., AbstractContextManager[Engine]]


def opener(model: Path) -> OpenEngine:
    """A function that opens the model with the given settings for the length of a `with`."""

    @contextmanager
    def open_engine(**settings: object) -> Iterator[Engine]:
        engine = LocalEngine.open(model, EngineConfig(**settings))  # type: ignore[arg-type]
        try:
            yield engine
        finally:
            engine.close()

    return open_engine


def machine(model: Path) -> dict[str, str]:
    """Processor or GPU, versions, model and date."""
    device = devices()[-1]
    return {
        "device": f"{device.name} ({device.details})",
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "torch": version("torch"),
        "octavo": version("octavo"),
        "model": model.name,
        "date": datetime.now(UTC).date().isoformat(),
    }
