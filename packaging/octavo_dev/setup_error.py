"""The one error of the set-up: what went wrong, and what to do about it. Any other that escapes is a fault of ours."""

from __future__ import annotations

import errno
from pathlib import Path


class SetupError(Exception):
    """A fault of the world, told in one sentence and followed by advice."""

    def __init__(self, sentence: str, advice: str) -> None:
        super().__init__(f"{sentence} {advice}")
        self.sentence = sentence
        self.advice = advice


def disk_error(error: OSError, place: Path) -> SetupError:
    """Turn an operating-system error met while writing below `place` into a sentence with the numbers that help."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return SetupError(
            f"The disk that holds {place} is full.",
            "Free some space (4 GB, or 12 with CUDA) and run the same command again; it goes on where it stopped.",
        )
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return SetupError(
            f"{place} cannot be written: {error.strerror}.",
            "Give yourself write permission there, or copy the project to a folder of your own, and try again.",
        )
    return SetupError(
        f"{error.filename or place} cannot be used: {error.strerror or error}.",
        "Look at that path and run the same command again.",
    )
