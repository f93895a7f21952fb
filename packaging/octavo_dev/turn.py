"""Turn: one set-up of a checkout works at a time; a second waits. The kernel holds it, so it ends with its process."""

from __future__ import annotations

import contextlib
import hashlib
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl


@contextlib.contextmanager
def turn(root: Path) -> Iterator[None]:
    """Hold the set-up of the checkout at `root`, after waiting for whoever holds it."""
    name = hashlib.sha256(str(root).encode()).hexdigest()[:16]
    path = Path(tempfile.gettempdir(), f"octavo-setup-{name}.lock")
    with path.open("a+b") as file:
        if not _try(file):
            print("Another set-up of this checkout is at work; waiting for it.", flush=True)
            while not _try(file):
                time.sleep(0.2)
        yield


def _try(file: IO[bytes]) -> bool:
    try:
        if sys.platform == "win32":
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True
