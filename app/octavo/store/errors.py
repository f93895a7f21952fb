"""Typed errors of the store, each with a sentence for people; and which of SQLite's faults is which of them."""

from __future__ import annotations

import errno
import shutil
import sqlite3
from pathlib import Path

from octavo.chat.advice import Advice
from octavo.chat.chat_store import KeepError

# SQLite reports a full disk as an input/output error where it cannot enlarge its shared memory.
_NO_ROOM = 64 * 1024
_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


class StoreError(KeepError):
    """The database cannot be used as asked."""


class ReadOnlyStore(StoreError):
    """The folder or the database may not be written to."""


class NewerDatabase(StoreError):
    """The database was written by a newer version of Octavo; it is only looked at."""


class StoreFull(StoreError):
    """No space left on the disk."""


class StoreDamaged(StoreError):
    """The file is not a database, or not a whole one."""


class StoreInUse(StoreError):
    """Another process has the same data folder open."""


def store_error(fault: sqlite3.Error | OSError, path: Path) -> StoreError:
    """The typed error for what SQLite or the system said about the database at `path`."""
    code = _code(fault)
    is_full = code == sqlite3.SQLITE_FULL or getattr(fault, "errno", None) == errno.ENOSPC
    if is_full or (code == sqlite3.SQLITE_IOERR and _free(path) < _NO_ROOM):
        return StoreFull(
            f"No space is left on the disk of {path.parent}. Your words stay in this window; free some space and they "
            "are kept again.",
            advice=Advice.RETRY,
        )
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM) or isinstance(fault, OSError):
        return ReadOnlyStore(
            f"Octavo may not write to {path.parent}, so no chat can be kept. Make the folder writable, or choose "
            "another with OCTAVO_HOME, and start Octavo again.",
            advice=Advice.OPEN_FOLDER,
        )
    if code in _DAMAGE:
        return StoreDamaged(
            f"The chats in {path} are damaged ({fault}). Nothing is written to the file any more; start Octavo again, "
            "which sets it aside and begins a new one.",
            advice=Advice.OPEN_FOLDER,
        )
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreError(
            f"Another program is using {path}. Close it; Octavo tries again by itself.", advice=Advice.RETRY
        )
    return StoreError(f"The chats in {path} cannot be kept ({fault}). Check the disk.", advice=Advice.OPEN_FOLDER)


def _code(fault: Exception) -> int | None:
    """SQLite's primary result code."""
    code: int | None = getattr(fault, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def _free(path: Path) -> int:
    """Bytes free on the disk of `path`."""
    return shutil.disk_usage(path.parent).free
