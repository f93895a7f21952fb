"""Files that only their owner may read."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

UNFINISHED = ".part"
_FLAGS = os.O_CREAT | getattr(os, "O_BINARY", 0)


def replace_file(path: Path, parts: Iterable[bytes]) -> None:
    """Write a file of mode 0600 so that `path` holds all of it, or what it held before.

    Raises:
        OSError: no space, no such folder, read-only.
    """
    unfinished = path.with_suffix(UNFINISHED)
    try:
        with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_TRUNC | _FLAGS, 0o600), "wb") as file:
            file.writelines(parts)
        unfinished.replace(path)
    except OSError:
        unfinished.unlink(missing_ok=True)
        raise


def append_to_file(path: Path, content: bytes) -> None:
    """Append to a file, which is made with mode 0600 if need be.

    Raises:
        OSError: no space, no such folder, read-only.
    """
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND | _FLAGS, 0o600), "wb") as file:
        file.write(content)
