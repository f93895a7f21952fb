"""An older database is copied first and then brought up to date, step by step, each all or nothing."""

from __future__ import annotations

import dataclasses
import sqlite3
from pathlib import Path

import pytest

from octavo.store import Store, StoreError, schema

NOW = schema.VERSION


@pytest.fixture
def old_path(tmp_path: Path) -> Path:
    """A database of today's version with one chat, which a later version will find."""
    path = tmp_path / "octavo.db"
    Store.open(path).close()
    connection = sqlite3.connect(path)
    connection.execute("INSERT INTO chat VALUES ('1', 'Old', 0, 0, NULL, '')")
    connection.commit()
    connection.close()
    return path


def test_older_database_is_backed_up_and_migrated(old_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _add_step(monkeypatch, "ALTER TABLE chat ADD COLUMN colour TEXT;")
    store = Store.open(old_path)
    assert store.problem is None
    assert [chat.title for chat in store.chats()] == ["Old"]
    store.close()
    assert _version(old_path) == NOW + 1
    copy = old_path.parent / "backups" / f"before-version-{NOW + 1}.db"
    assert _version(copy) == NOW
    assert sqlite3.connect(copy).execute("SELECT title FROM chat").fetchall() == [("Old",)]


def test_failing_step_changes_nothing(old_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _add_step(monkeypatch, "ALTER TABLE chat ADD COLUMN colour TEXT; INSERT INTO nowhere VALUES (1);")
    store = Store.open(old_path)
    assert isinstance(store.problem, StoreError)
    assert store.is_read_only
    assert [chat.title for chat in store.chats()] == ["Old"]
    store.close()
    assert _version(old_path) == NOW
    columns = [row[1] for row in sqlite3.connect(old_path).execute("PRAGMA table_info(chat)")]
    assert "colour" not in columns


def test_version_1_is_brought_up_to_date(tmp_path: Path) -> None:
    path = tmp_path / "octavo.db"
    connection = sqlite3.connect(path)
    connection.executescript(
        schema._MIGRATIONS[0]
        + """
        INSERT INTO chat VALUES ('c', 'Old', 0, 0, 'm', '');
        INSERT INTO message (id, chat_id, role, status, created) VALUES ('m', 'c', 'assistant', 'complete', 0);
        INSERT INTO part VALUES ('m', 0, 'text', 'An old answer');
        PRAGMA user_version = 1;
        """
    )
    connection.close()
    store = Store.open(path)
    (message,) = store.messages("c")
    assert (message.text, message.token_ids) == ("An old answer", ())
    store.save_answer(dataclasses.replace(message, token_ids=(0, 49_151, 2**31 - 1)))
    store.close()
    store = Store.open(path)
    assert store.messages("c")[0].token_ids == (0, 49_151, 2**31 - 1)
    store.close()
    assert _version(path.parent / "backups" / f"before-version-{NOW}.db") == 1


def _add_step(monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    monkeypatch.setattr(schema, "_MIGRATIONS", (*schema._MIGRATIONS, script))
    monkeypatch.setattr(schema, "VERSION", schema.VERSION + 1)


def _version(path: Path) -> int:
    connection = sqlite3.connect(path)
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    connection.close()
    return version
