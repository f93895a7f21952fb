"""A lock on a data folder that the kernel holds for this process, so that no crash can leave it behind."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import IO

if sys.platform == "win32":
    import msvcrt

    def _try_lock(file: IO[bytes]) -> None:
        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _try_lock(file: IO[bytes]) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


class InstanceLock:
    """One process at a time holds the lock on `path`; the file itself stays and means nothing."""

    def __init__(self, path: Path) -> None:
        """Make a lock that is not held yet."""
        self._path = path
        self._file: IO[bytes] | None = None

    @property
    def is_held(self) -> bool:
        """True while this object holds the lock."""
        return self._file is not None

    def acquire(self) -> bool:
        """Take the lock if nobody has it; never waits. Raises OSError where the file cannot be made."""
        assert self._file is None, "already held"
        file = os.fdopen(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600), "r+b")
        try:
            _try_lock(file)
        except (BlockingIOError, PermissionError):
            file.close()
            return False
        self._file = file
        return True

    def release(self) -> None:
        """Give the lock back. Without it nothing happens."""
        if self._file is not None:
            self._file.close()
            self._file = None
