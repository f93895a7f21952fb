"""The line on standard error that says what a command is waiting for. Knows no engine but its progress."""

from __future__ import annotations

import sys
import threading
import time
from typing import TextIO

from octavo.engine_client import LoadProgress

# A model that loads faster than this is loaded without a word.
_PATIENCE = 0.7
_REDRAW = 0.1


class ProgressLine:
    """One line, drawn over itself in a terminal; elsewhere only its stages are printed, each once."""

    def __init__(self, model: str, stream: TextIO | None = None) -> None:
        """Make a line about `model` that shows nothing yet."""
        self._model = model
        self._stream = stream or sys.stderr
        self._is_terminal = self._stream.isatty()
        self._began = time.monotonic()
        self._drawn = 0.0
        self._stage: str | None = None
        self._is_open = False
        self._changed = threading.Lock()

    def update(self, progress: LoadProgress) -> bool:
        """Show how far a load has come; always True, so that it goes on."""
        now = time.monotonic()
        is_preparing = progress.stage == "kernels"
        what = "preparing Octavo for this processor" if is_preparing else f"loading {self._model}"
        with self._changed:
            if now - self._began < _PATIENCE and not (is_preparing and progress.done < progress.total):
                return True
            if self._is_terminal:
                if now - self._drawn >= _REDRAW:
                    self._drawn = now
                    self._is_open = True
                    self._stream.write(f"\r\x1b[K{what}{_share(progress)}")
                    self._stream.flush()
            elif what != self._stage:
                self._stream.write(f"{what} ...\n")
                self._stream.flush()
            self._stage = what
        return True

    def clear(self) -> None:
        """Take the line away."""
        with self._changed:
            if self._is_open:
                self._is_open = False
                self._stream.write("\r\x1b[K")
                self._stream.flush()


def _share(progress: LoadProgress) -> str:
    return f" {100 * progress.done // progress.total} %" if progress.total else ""
