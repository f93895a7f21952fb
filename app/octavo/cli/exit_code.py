"""How a command says what became of it. Plain values."""

from __future__ import annotations

import enum


class ExitCode(enum.IntEnum):
    """The codes that every command keeps to."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NO_MODEL = 3
    INTERRUPTED = 130
