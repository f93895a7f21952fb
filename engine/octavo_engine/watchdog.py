"""The watchdog: notices that nothing runs while something waits. Knows times and sentences only."""

from __future__ import annotations

import logging

_log = logging.getLogger(__name__)
_PATIENCE_SECONDS = 1.0


class Watchdog:
    """Reports a standstill once, when it has lasted for a second, and takes the report back when it ends."""

    def __init__(self) -> None:
        """Begin with nothing to report."""
        self._since: float | None = None
        self.report: str | None = None

    def look(self, now: float, *, running: bool, waiting: int, reason: str | None) -> None:
        """Note how things stand at `now` (seconds of any clock that only grows).

        Args:
            now: the time.
            running: whether a step ran.
            waiting: sequences that want to run.
            reason: what they wait for, as far as it is known.
        """
        if running or not waiting:
            self._since = self.report = None
            return
        if self._since is None:
            self._since = now
        if self.report is None and now - self._since > _PATIENCE_SECONDS:
            who = "1 answer waits" if waiting == 1 else f"{waiting} answers wait"
            self.report = f"Nothing runs while {who}: {reason or 'for no known reason'}."
            _log.warning("%s", self.report)
