"""Opens a database whatever state it is in: new, of this version, older, newer, read-only, damaged or in use.

Knows SQLite and files; no threads, no rows but the mark of interrupted answers.
"""

from __future__ import annotations

import contextlib
import logging
import sqlite3
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from octavo.chat.advice import Advice
from octavo.instance_lock import InstanceLock
from octavo.store import rows
from octavo.store.errors import NewerDatabase, StoreDamaged, StoreError, StoreFull, StoreInUse, store_error
from octavo.store.schema import VERSION, migrate, version_of

_log = logging.getLogger(__name__)
_BUSY_MILLISECONDS = 5_000


@dataclass(frozen=True, slots=True)
class Opened:
    """An open database.

    Attributes:
        writing: the connection to write with; None where nothing may be written.
        reading: another one, to read with.
        lock: held for as long as the database may be written to.
        problem: what the reader of the chats has to know: why nothing is kept, or what was set aside.
    """

    writing: sqlite3.Connection | None
    reading: sqlite3.Connection
    lock: InstanceLock | None
    problem: StoreError | None


def open_database(path: Path, backups: Path) -> Opened:
    """Open the database at `path` for writing, or, where that cannot be, for looking at it.

    Raises:
        StoreInUse: another process has it open.
        StoreError: it can be neither written nor read.
    """
    lock = InstanceLock(path.with_suffix(".lock"))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not lock.acquire():
            raise StoreInUse(
                f"Octavo is already running with the chats of {path.parent}. Use its window, or give this one another "
                "folder with OCTAVO_HOME."
            )
    except OSError as fault:
        return _for_looking(path, store_error(fault, path))
    try:
        try:
            return _for_writing(path, backups, lock, None)
        except StoreDamaged:
            return _for_writing(path, backups, lock, _set_aside(path))
    except StoreFull:
        lock.release()
        return _for_looking(
            path,
            StoreFull(
                f"No space is left on the disk of {path.parent}, so no chat can be kept. Free some space and start "
                "Octavo again.",
                advice=Advice.OPEN_FOLDER,
            ),
        )
    except StoreError as problem:
        lock.release()
        return _for_looking(path, problem)
    except BaseException:
        lock.release()
        raise


def _for_writing(path: Path, backups: Path, lock: InstanceLock, problem: StoreError | None) -> Opened:
    """Raises StoreDamaged for a broken file, another StoreError for what may only be looked at."""
    connection = None
    try:
        was_left_open = _size(path.with_name(path.name + "-wal")) > 0
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        connection.execute(f"PRAGMA busy_timeout = {_BUSY_MILLISECONDS}")
        if version_of(connection) > VERSION:
            raise _newer(path, version_of(connection))
        if was_left_open:
            _check(connection, path)
        connection.execute("PRAGMA journal_mode = WAL").fetchone()
        # A commit survives a crash of the machine, and what is deleted is overwritten.
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA secure_delete = ON").fetchone()
        connection.execute("PRAGMA foreign_keys = ON")
        migrate(connection, path, backups)
        # Also finds out whether the file may be written to at all.
        connection.execute("BEGIN IMMEDIATE")
        rows.interrupt_streaming(connection)
        connection.execute("COMMIT")
        return Opened(connection, _reader(path, "mode=ro"), lock, problem)
    except sqlite3.Error as fault:
        _close(connection)
        raise store_error(fault, path) from fault
    except BaseException:
        _close(connection)
        raise


def _check(connection: sqlite3.Connection, path: Path) -> None:
    """Look through a database that was not closed. Raises StoreDamaged."""
    finding = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if finding != "ok":
        raise StoreDamaged(f"The chats in {path} are damaged ({finding}).", advice=Advice.OPEN_FOLDER)


def _set_aside(path: Path) -> StoreDamaged:
    """Rename a damaged database with what belongs to it; what to tell people about it. Raises StoreError."""
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S-%f")
    aside = path.with_name(f"{path.stem}-damaged-{stamp}{path.suffix}")
    try:
        for suffix in ("-wal", "-shm", ""):
            source = path.with_name(path.name + suffix)
            if source.exists():
                source.rename(aside.with_name(aside.name + suffix))
    except OSError as fault:
        raise store_error(fault, path) from fault
    _log.error("the database is damaged and now named %s", aside)
    return StoreDamaged(
        f"The chats could not be read: their file is damaged. It is kept, whole, as {aside.name}; new chats go into a "
        "new file. A copy from your backup can take its place while Octavo is closed.",
        advice=Advice.OPEN_FOLDER,
    )


def _for_looking(path: Path, problem: StoreError) -> Opened:
    """Open what can be read of a database that cannot be written; an empty one where there is none."""
    if not path.exists():
        return Opened(None, _empty(), None, problem)
    # A folder that cannot be written has no room for shared memory; then the file is read as it lies there.
    for mode in ("mode=ro", "mode=ro&immutable=1"):
        connection = None
        try:
            connection = _reader(path, mode)
            rows.chats(connection)
        except sqlite3.Error as fault:
            _log.warning("%s cannot be read with %s: %s", path, mode, fault)
            _close(connection)
        else:
            return Opened(None, connection, None, problem)
    return Opened(None, _empty(), None, problem)


def _reader(path: Path, mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{path.as_uri()}?{mode}", uri=True, isolation_level=None, check_same_thread=False)
    connection.execute(f"PRAGMA busy_timeout = {_BUSY_MILLISECONDS}")
    return connection


def _empty() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    migrate(connection, Path("memory"), Path("memory"))
    return connection


def _newer(path: Path, version: int) -> NewerDatabase:
    return NewerDatabase(
        f"The chats in {path} were written by a newer version of Octavo (format {version}; this one writes {VERSION}). "
        "You can read them here, and nothing is changed; update Octavo to go on with them."
    )


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _close(connection: sqlite3.Connection | None) -> None:
    if connection is not None:
        with contextlib.suppress(sqlite3.Error):
            connection.close()
