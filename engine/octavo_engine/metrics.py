"""Counters and percentiles of one engine. Knows times and counts only."""

from __future__ import annotations

import time
from collections import deque

from octavo_engine.events import Timings

_WINDOW_SECONDS = 2.0
_REMEMBERED_REQUESTS = 512


class Metrics:
    """What happened so far; the rate is over the last two seconds, percentiles over the last 512 requests."""

    def __init__(self) -> None:
        """Start counting."""
        self.steps = 0
        self.preemptions = 0
        self.recomputes = 0
        self.copies_on_write = 0
        self.prompt_tokens = 0
        self.cached_tokens = 0
        self._tokens: deque[tuple[float, int]] = deque()
        self._finished: deque[Timings] = deque(maxlen=_REMEMBERED_REQUESTS)

    def count_step(self, tokens: int) -> None:
        """Note a step that drew `tokens` tokens."""
        self.steps += 1
        now = time.monotonic()
        self._tokens.append((now, tokens))
        while self._tokens[0][0] < now - _WINDOW_SECONDS:
            self._tokens.popleft()

    def count_finished(self, timings: Timings) -> None:
        """Note the times of a request that ended."""
        self._finished.append(timings)

    def tokens_per_second(self) -> float:
        """Tokens drawn in the last two seconds, by the second; 0.0 when there were none."""
        since = time.monotonic() - _WINDOW_SECONDS
        recent = [(at, count) for at, count in tuple(self._tokens) if at >= since]
        if len(recent) < 2:
            return 0.0
        return sum(count for _, count in recent[1:]) / (recent[-1][0] - recent[0][0])

    def percentile(self, name: str, share: float) -> float | None:
        """The value of one of the `Timings` that `share` of the remembered requests do not exceed; None without any."""
        values = sorted(v for v in (getattr(t, name) for t in tuple(self._finished)) if v is not None)
        return values[min(len(values) - 1, int(share * len(values)))] if values else None
