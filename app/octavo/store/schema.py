"""The tables, and how a database of an older version becomes one of this version. Knows no threads."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from octavo.store.errors import store_error

# One entry for each version of the schema, in order; what was once released is never edited.
_MIGRATIONS = (
    """
    CREATE TABLE chat (
        id TEXT PRIMARY KEY,
        title TEXT NOT NULL,
        created INTEGER NOT NULL,
        updated INTEGER NOT NULL,
        leaf_id TEXT,
        system TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX chat_updated ON chat (updated);
    CREATE TABLE message (
        id TEXT PRIMARY KEY,
        chat_id TEXT NOT NULL REFERENCES chat (id) ON DELETE CASCADE,
        parent_id TEXT,
        role TEXT NOT NULL,
        status TEXT NOT NULL,
        created INTEGER NOT NULL,
        model TEXT,
        finish_reason TEXT,
        error TEXT,
        prompt_tokens INTEGER,
        cached_tokens INTEGER,
        completion_tokens INTEGER,
        ttft REAL,
        seconds REAL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX message_chat ON message (chat_id);
    CREATE INDEX message_streaming ON message (status) WHERE status = 'streaming';
    CREATE TABLE part (
        message_id TEXT NOT NULL REFERENCES message (id) ON DELETE CASCADE,
        position INTEGER NOT NULL,
        kind TEXT NOT NULL,
        text TEXT NOT NULL,
        PRIMARY KEY (message_id, position)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE draft (
        chat_id TEXT PRIMARY KEY REFERENCES chat (id) ON DELETE CASCADE,
        text TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
    """,
    """
    ALTER TABLE message ADD COLUMN token_ids BLOB;
    """,
)
VERSION = len(_MIGRATIONS)


def version_of(connection: sqlite3.Connection) -> int:
    """The version of a database's schema; 0 for an empty one."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version


def migrate(connection: sqlite3.Connection, path: Path, backups: Path) -> None:
    """Bring the database up to `VERSION`, step by step, each all or nothing; an older one is copied to `backups` first.

    Raises:
        StoreError: the copy or a step failed; the database is as it was before that step.
    """
    version = version_of(connection)
    if 0 < version < VERSION:
        back_up(connection, path, backups / f"before-version-{VERSION}.db")
    for number, script in enumerate(_MIGRATIONS[version:], version + 1):
        try:
            connection.executescript(f"BEGIN IMMEDIATE; {script} PRAGMA user_version = {number}; COMMIT;")
        except sqlite3.Error as fault:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise store_error(fault, path) from fault


def back_up(connection: sqlite3.Connection, path: Path, target: Path) -> None:
    """Copy a whole database to `target`, which has its name only once it is complete. Raises StoreError."""
    part = target.with_suffix(".part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        part.unlink(missing_ok=True)
        copy = sqlite3.connect(part)
        try:
            connection.backup(copy)
        finally:
            copy.close()
        part.replace(target)
    except (sqlite3.Error, OSError) as fault:
        part.unlink(missing_ok=True)
        raise store_error(fault, path) from fault
