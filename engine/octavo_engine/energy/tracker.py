"""Energy for each token, over the time in which the engine works. Knows a meter and a clock; no engine."""

from __future__ import annotations

import time
from collections.abc import Callable

from octavo_engine.energy.meter import EnergyMeter, EnergyUnavailable, Unavailable

_READ_EVERY = 0.5
# A longer pause between two steps was rest.
_REST = 0.1


class EnergyTracker:
    """Divides the energy of the spans of time in which steps follow each other by the tokens that they generate.

    What counts, exactly:

    - A span begins with a reading before its first step, so that the reading of a prompt is in it, and goes on while
      the next step begins within 0.1 s of the end of the last one.
    - After a step, half a second or more behind the last reading, the meter is read: the energy since that reading
      counts, with the tokens of the steps since then.
    - When the engine has nothing left to run (`rest`), the remainder of a span that was counted so far is counted too.
    - Nothing else counts, neither its energy nor its tokens: the time between spans, a span shorter than half a second
      (counters are too coarse for it), and the remainder, less than half a second, of a span that ends without `rest`
      because its answers were paused.
    - A span that would begin within half a second of the last reading begins with the first step behind that.

    So the meter is read about twice a second, and never more than four times.
    """

    def __init__(self, meter: EnergyMeter | Unavailable, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin with nothing counted; `clock` gives seconds."""
        self._meter = meter
        self._clock = clock
        self._reason = meter.reason if isinstance(meter, Unavailable) else "No answer has been long enough yet to tell."
        self._joules = 0.0
        self._tokens = 0
        # The open part of a span: the reading at its beginning, the tokens since, and whether a part before it counted.
        self._reading: float | None = None
        self._open_tokens = 0
        self._goes_on = False
        self._last_read = self._last_step = float("-inf")

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

    def begin_step(self) -> None:
        """Note that a step is about to run."""
        now = self._clock()
        if now - self._last_step > _REST:
            self._reading = None
        if self._reading is None and now - self._last_read >= _READ_EVERY:
            self._reading = self._read(now)
            self._open_tokens = 0
            self._goes_on = False

    def count_step(self, tokens: int) -> None:
        """Note that a step has just ended and generated `tokens` tokens."""
        self._last_step = now = self._clock()
        self._open_tokens += tokens
        if self._reading is not None and now - self._last_read >= _READ_EVERY:
            self._count(now)
            self._goes_on = True

    def rest(self) -> None:
        """Note that there is nothing left to run; costs nothing when it has been said before."""
        if not self._goes_on:
            return
        self._goes_on = False
        now = self._clock()
        # Later than that, a paused answer has been cancelled, and nothing ran while it was paused.
        if now - self._last_step <= _REST:
            self._count(now)

    def _count(self, now: float) -> None:
        """Charge the energy since the last reading to the tokens since."""
        begin, self._reading = self._reading, self._read(now)
        if begin is not None and self._reading is not None:
            self._joules += self._reading - begin
            self._tokens += self._open_tokens
        self._open_tokens = 0

    def _read(self, now: float) -> float | None:
        """Joules; None when the meter has failed, now or before."""
        if isinstance(self._meter, Unavailable):
            return None
        self._last_read = now
        try:
            return self._meter.joules()
        except EnergyUnavailable as fault:
            self._meter = Unavailable(str(fault))
            self._reason = str(fault)
            return None
