"""The world's faults: read-only, full, newer, damaged. Each has its error, and nothing is lost or half-written."""

from __future__ import annotations

import dataclasses
import sqlite3
import subprocess
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from octavo.chat.chat import Chat
from octavo.chat.identifier import new_id
from octavo.chat.message import Message, Role, Status
from octavo.store import NewerDatabase, ReadOnlyStore, Store, StoreDamaged, StoreFull
from octavo.store.schema import VERSION
from small_disk import mounted, needs_mount

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def a_chat(title: str = "A chat") -> Chat:
    return Chat(id=new_id(), title=title, created=NOW, updated=NOW)


def a_turn(chat: Chat, text: str) -> tuple[Message, Message]:
    question = Message(
        id=new_id(), chat_id=chat.id, parent_id=None, role=Role.USER, status=Status.COMPLETE, text=text, created=NOW
    )
    answer = dataclasses.replace(
        question, id=new_id(), parent_id=question.id, role=Role.ASSISTANT, status=Status.STREAMING, text=""
    )
    return question, answer


def tree_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@needs_mount
def test_read_only_folder_shows_chats_and_refuses_writing(tmp_path: Path) -> None:
    folder = tmp_path / "disk"
    with mounted(folder, "size=8m"):
        store = Store.open(folder / "octavo.db")
        chat = a_chat()
        store.save_turn(chat, a_turn(chat, "Kept?")).result(10)
        store.close()
        before = tree_of(folder)
        subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
        store = Store.open(folder / "octavo.db")
        assert isinstance(store.problem, ReadOnlyStore)
        assert str(folder) in store.problem.message
        assert store.is_read_only
        assert store.chats() == (chat,)
        assert [message.text for message in store.messages(chat.id)] == ["Kept?", ""]
        with pytest.raises(ReadOnlyStore):
            store.save_chat(a_chat()).result(10)
        with pytest.raises(ReadOnlyStore):
            store.delete_chat(chat.id).result(10)
        assert store.is_idle()
        store.close()
        assert tree_of(folder) == before


@needs_mount
def test_read_only_folder_without_chats(tmp_path: Path) -> None:
    folder = tmp_path / "disk"
    with mounted(folder, "size=8m,ro"):
        store = Store.open(folder / "data" / "octavo.db")
        assert isinstance(store.problem, ReadOnlyStore)
        assert store.chats() == ()
        store.close()


@needs_mount
def test_disk_that_is_full_when_it_is_opened(tmp_path: Path) -> None:
    folder = tmp_path / "disk"
    with mounted(folder, "size=64k"):
        (folder / "ballast").write_bytes(b"x" * 60_000)
        store = Store.open(folder / "octavo.db")
        assert isinstance(store.problem, StoreFull)
        assert store.chats() == ()
        store.close()
        (folder / "ballast").unlink()
        with_room = Store.open(folder / "octavo.db")
        assert with_room.problem is None or isinstance(with_room.problem, StoreFull)
        with_room.close()


@needs_mount
def test_full_disk_loses_nothing_and_goes_on_when_there_is_room(tmp_path: Path) -> None:
    folder = tmp_path / "disk"
    with mounted(folder, "size=2m"):
        store = Store.open(folder / "octavo.db")
        chat = a_chat()
        question, answer = a_turn(chat, "Kept?")
        store.save_turn(chat, (question, answer)).result(10)
        ballast = folder / "ballast"
        _fill(ballast)

        # The stream goes on; the disk does not.
        growing = dataclasses.replace(answer, text="word " * 100_000)
        store.save_answer(growing)
        _wait(lambda: isinstance(store.problem, StoreFull))
        assert not store.is_idle()
        another = a_chat("Another")
        with pytest.raises(StoreFull, match="No space"):
            store.save_turn(another, a_turn(another, "word " * 100_000)).result(10)
        assert store.chats() == (chat,)
        assert store.messages(chat.id) == (question, answer)

        ballast.unlink()
        _wait(store.is_idle)
        assert store.problem is None
        assert store.messages(chat.id) == (question, growing)
        store.save_turn(another, a_turn(another, "short")).result(10)
        store.close()
        connection = sqlite3.connect(folder / "octavo.db")
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        connection.close()


def test_newer_database_is_read_and_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "octavo.db"
    store = Store.open(path)
    chat = a_chat("From the future")
    store.save_turn(chat, a_turn(chat, "Still readable?")).result(10)
    store.close()
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    connection.close()
    before = path.read_bytes()
    store = Store.open(path)
    assert isinstance(store.problem, NewerDatabase)
    assert "newer version" in store.problem.message
    assert store.chats() == (chat,)
    assert store.messages(chat.id)[0].text == "Still readable?"
    with pytest.raises(NewerDatabase):
        store.save_chat(chat).result(10)
    store.close()
    assert path.read_bytes() == before


def test_newer_database_of_another_shape_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "octavo.db"
    connection = sqlite3.connect(path)
    connection.executescript(f"CREATE TABLE leaf (id); PRAGMA user_version = {VERSION + 7};")
    connection.close()
    before = path.read_bytes()
    store = Store.open(path)
    assert isinstance(store.problem, NewerDatabase)
    assert store.chats() == ()
    store.close()
    assert path.read_bytes() == before


@pytest.mark.parametrize("damage", ["text", "header", "middle"])
def test_damaged_database_is_set_aside_whole(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "octavo.db"
    store = Store.open(path)
    chat = a_chat()
    store.save_turn(chat, a_turn(chat, "word " * 20_000)).result(10)
    store.close()
    content = bytearray(path.read_bytes())
    if damage == "text":
        content = bytearray(b"these are my shopping notes\n" * 400)
    elif damage == "header":
        content[:100] = bytes(100)
    else:
        # The tables' own page, as a power cut leaves it.
        content[100:4096] = bytes(3996)
    path.write_bytes(content)
    store = Store.open(path)
    assert isinstance(store.problem, StoreDamaged)
    assert not store.is_read_only
    (aside,) = tmp_path.glob("octavo-damaged-*.db")
    assert aside.name in store.problem.message
    assert aside.read_bytes() == content
    store.save_chat(chat).result(10)
    assert store.chats() == (chat,)
    store.close()
    store = Store.open(path)
    assert store.problem is None
    store.close()
    assert aside.read_bytes() == content


def test_damaged_page_after_an_unclean_end_is_found(tmp_path: Path) -> None:
    path = tmp_path / "octavo.db"
    store = Store.open(path)
    chat = a_chat()
    for _ in range(50):
        store.save_turn(chat, a_turn(chat, "word " * 2_000))
    store.close()
    # A program that was killed leaves its write-ahead log behind.
    killed = sqlite3.connect(path, isolation_level=None)
    killed.execute("INSERT INTO draft VALUES (?, 'x')", (chat.id,))
    names = ("octavo.db", "octavo.db-wal", "octavo.db-shm")
    left = {name: (tmp_path / name).read_bytes() for name in names}
    killed.close()
    for name, content in left.items():
        (tmp_path / name).write_bytes(content)
    page = bytearray(path.read_bytes())
    page[20 * 4096 : 21 * 4096] = bytes(4096)
    path.write_bytes(page)
    store = Store.open(path)
    assert isinstance(store.problem, StoreDamaged)
    assert list(tmp_path.glob("octavo-damaged-*.db"))
    store.close()


def _fill(ballast: Path) -> None:
    """Leave no room on the disk of `ballast`."""
    with ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            return


def _wait(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    pause = threading.Event()
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        pause.wait(0.01)
