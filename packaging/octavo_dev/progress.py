"""What the set-up shows while it works: numbered steps, and a line of bytes that is redrawn in a terminal and printed
at each tenth elsewhere.
"""

from __future__ import annotations

import sys


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
        self._tenth = -1
        self._open = False

    def show(self, done: int, total: int) -> None:
        """Tell that `done` of `total` bytes are there."""
        if total <= 0:
            return
        text = f"      {self._label}: {human_bytes(done)} of {human_bytes(total)}"
        if sys.stdout.isatty():
            print(f"\r{text:<90}", end="", flush=True)
            self._open = True
        elif done * 10 // total > self._tenth:
            print(text, flush=True)
        self._tenth = done * 10 // total

    def end(self) -> None:
        """Leave the line as it is and go to the next."""
        if self._open:
            print(flush=True)
        self._open = False
        self._tenth = -1
