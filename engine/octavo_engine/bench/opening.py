"""Opens the engine that a benchmark measures, and says what it is measured on."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from octavo_engine.api import Engine
from octavo_engine.config import EngineConfig
from octavo_engine.devices import devices
from octavo_engine.local_engine import LocalEngine


class OpenEngine:
    """Opens one model with the settings that a part wants."""

    def __init__(self, model: Path) -> None:
        """Open `model`, a file or a folder."""
        self.model = model

    @contextmanager
    def __call__(self, **settings: object) -> Iterator[Engine]:
        """An engine with these settings for the length of a `with`."""
        engine = LocalEngine.open(self.model, EngineConfig(**settings))  # type: ignore[arg-type]
        try:
            yield engine
        finally:
            engine.close()


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
