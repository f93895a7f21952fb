"""What the set-up shows of a transfer: a line, redrawn in a terminal and printed every few seconds elsewhere."""

from __future__ import annotations

import sys
import time

# Without a terminal each line stays: one is enough for a short transfer, and a long one shows that it lives.
_QUIET_SECONDS = 3.0


def human_bytes(count: int) -> str:
    """1,234,567 as `1.2 MB`; powers of ten, as download pages count."""
    size = float(count)
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.2f} GB"


class ByteLine:
    """Progress of one transfer."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._open = False
        self._shown = time.monotonic()

    def show(self, done: int, total: int) -> None:
        """Tell that `done` of `total` bytes are there."""
        if total <= 0:
            return
        text = f"      {self._label}: {human_bytes(done)} of {human_bytes(total)}"
        if sys.stdout.isatty():
            print(f"\r{text:<90}", end="", flush=True)
            self._open = True
        elif done >= total or time.monotonic() - self._shown > _QUIET_SECONDS:
            print(text, flush=True)
            self._shown = time.monotonic()

    def end(self) -> None:
        """Leave the line as it is and go to the next."""
        if self._open:
            print(flush=True)
        self._open = False
