"""Energy for each token, over the time in which the engine works."""

from __future__ import annotations

import time
from collections.abc import Callable

from octavo_engine.energy.meter import EnergyMeter, EnergyUnavailable, Unavailable

_READ_EVERY = 0.5
# A longer pause between two steps was rest.
_REST = 0.1


class EnergyTracker:
    """Reads the meter twice a second while steps run, and divides energy by tokens.

    Energy between two readings counts when steps followed each other all the time, from the end of one to the end of
    another. What was used while the engine rested belongs to nobody.
    """

    def __init__(self, meter: EnergyMeter | Unavailable, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin with nothing counted."""
        self._meter = meter
        self._clock = clock
        self._reason = meter.reason if isinstance(meter, Unavailable) else "No answer has been long enough yet to tell."
        self._joules = 0.0
        self._tokens = 0
        # The open span: the reading at its beginning, when that was, and the tokens since.
        self._reading: tuple[float, float] | None = None
        self._open_tokens = 0
        self._last_step = float("-inf")

    @property
    def source(self) -> str:
        """The name of the meter."""
        return "not available" if isinstance(self._meter, Unavailable) else self._meter.name

    @property
    def note(self) -> str:
        """Why there is no figure; "" when there is one."""
        return self._reason if self.joules_per_token is None else ""

    @property
    def joules_per_token(self) -> float | None:
        """Joules for each generated token, the reading of prompts included; None while unknown."""
        return self._joules / self._tokens if self._tokens and not isinstance(self._meter, Unavailable) else None

    def count_step(self, tokens: int, seconds: float) -> None:
        """Note a step that has just ended, took `seconds` and generated `tokens` tokens."""
        if isinstance(self._meter, Unavailable):
            return
        now = self._clock()
        rested = now - seconds - self._last_step > _REST
        self._last_step = now
        if self._reading is None or rested:
            self._begin(now)
            return
        self._open_tokens += tokens
        if now - self._reading[1] >= _READ_EVERY:
            joules = self._read()
            if joules is not None:
                self._joules += joules - self._reading[0]
                self._tokens += self._open_tokens
                self._reading, self._open_tokens = (joules, now), 0

    def _begin(self, now: float) -> None:
        joules = self._read()
        self._reading = (joules, now) if joules is not None else None
        self._open_tokens = 0

    def _read(self) -> float | None:
        assert not isinstance(self._meter, Unavailable)
        try:
            return self._meter.joules()
        except EnergyUnavailable as fault:
            self._meter = Unavailable(str(fault))
            self._reason = str(fault)
            return None
