"""What the window shows of the engine: where its loading stands. Plain values."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from octavo_engine import EngineError, LoadProgress


class Phase(enum.StrEnum):
    """Where the engine stands."""

    IDLE = "idle"
    LOADING = "loading"
    READY = "ready"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class EngineStatus:
    """The engine at one moment.

    Attributes:
        text: a line for people.
        done: how much of `total` is loaded, in the unit of the stage; 0 of 0 where that is not known.
        model_name: the model that answers or is being loaded; None where there is none.
        error: what the loading failed with.
    """

    phase: Phase
    text: str
    done: int = 0
    total: int = 0
    model_name: str | None = None
    error: EngineError | None = None

    def with_progress(self, progress: LoadProgress) -> EngineStatus:
        """This status, further on."""
        share = f", {100 * progress.done // progress.total} %" if progress.total else ""
        what = _STAGES.get(progress.stage, "Loading {model}").format(model=self.model_name or "the model")
        return EngineStatus(Phase.LOADING, what + share, progress.done, progress.total, self.model_name)


# The stages that do not read the model itself.
_STAGES = {"kernels": "Preparing Octavo for this processor"}
