"""A model opened for a command, with the line on standard error that says how far it is. Knows no conversation."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from octavo.cli.progress_line import ProgressLine
from octavo.engine_client import Engine, EngineConfig
from octavo.library.shelf import Shelf
from octavo.paths import Paths


@dataclass(frozen=True, slots=True)
class OpenedModel:
    """An engine that is ready, and the seconds that its loading took."""

    engine: Engine
    load_seconds: float


@contextmanager
def opened_model(name: str | None, config: EngineConfig = EngineConfig()) -> Iterator[OpenedModel]:
    """Open the model that `name` means with these settings, and close it afterwards.

    Raises:
        NoModel: there is none of that name.
        EngineError: it cannot be opened.
    """
    paths = Paths.find()
    paths.export()
    path: Path = Shelf(paths).find(name)
    line = ProgressLine(path.stem)
    began = time.perf_counter()
    try:
        engine = Engine.open(path, config, progress=line.update)
    finally:
        line.clear()
    try:
        yield OpenedModel(engine, time.perf_counter() - began)
    finally:
        engine.close()
