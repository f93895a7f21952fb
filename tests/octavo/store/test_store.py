"""What is written is read back, in any order of writers and readers, and only whole transactions."""

from __future__ import annotations

import dataclasses
import sqlite3
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from octavo.chat.chat import Chat
from octavo.chat.identifier import new_id
from octavo.chat.message import Message, Role, Status
from octavo.store import Store, StoreError, StoreInUse
from octavo.store.schema import VERSION

NOW = datetime(2026, 3, 4, 5, 6, 7, 891011, tzinfo=UTC)


def a_chat(title: str = "A chat", *, leaf_id: str | None = None, later: int = 0) -> Chat:
    return Chat(id=new_id(), title=title, created=NOW, updated=NOW + timedelta(seconds=later), leaf_id=leaf_id)


def a_turn(chat: Chat, question: str = "Why?", answer: str = "") -> tuple[Message, Message]:
    asked = Message(
        id=new_id(),
        chat_id=chat.id,
        parent_id=None,
        role=Role.USER,
        status=Status.COMPLETE,
        text=question,
        created=NOW,
    )
    answered = dataclasses.replace(
        asked, id=new_id(), parent_id=asked.id, role=Role.ASSISTANT, status=Status.STREAMING, text=answer, model="M"
    )
    return asked, answered


def test_every_value_comes_back(store: Store) -> None:
    chat = dataclasses.replace(a_chat(), system="Be kind.")
    question, answer = a_turn(chat, "Ünïcode \U0001f600\n\ttabs", "text")
    chat = dataclasses.replace(chat, leaf_id=answer.id)
    answer = dataclasses.replace(
        answer,
        status=Status.ERROR,
        error="It broke.",
        finish_reason="memory",
        prompt_tokens=10,
        cached_tokens=8,
        completion_tokens=7,
        ttft=0.25,
        seconds=1.5,
    )
    store.save_turn(chat, (question, answer)).result(10)
    assert store.chats() == (chat,)
    assert store.messages(chat.id) == (question, answer)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=30)
@given(text=st.text())
def test_any_text_comes_back(store: Store, text: str) -> None:
    chat = a_chat()
    store.save_turn(chat, a_turn(chat, text)).result(10)
    assert store.messages(chat.id)[0].text == text
    store.save_draft(chat, text).result(10)
    assert store.draft(chat.id) == text


def test_lone_surrogate_is_an_error_and_the_writer_lives_on(store: Store) -> None:
    chat = a_chat()
    with pytest.raises(StoreError):
        store.save_turn(chat, a_turn(chat, "\ud800")).result(10)
    assert store.chats() == ()
    store.save_chat(chat).result(10)
    assert store.chats() == (chat,)


def test_chats_come_last_updated_first(store: Store) -> None:
    chats = [a_chat(str(number), later=number) for number in (2, 0, 1)]
    for chat in chats:
        store.save_chat(chat)
    assert store.flush(10)
    assert [chat.title for chat in store.chats()] == ["2", "1", "0"]


def test_growing_answer_is_on_disk_within_a_second_and_not_at_every_piece(store: Store, tmp_path: Path) -> None:
    chat = a_chat()
    question, answer = a_turn(chat)
    store.save_turn(chat, (question, answer)).result(10)
    wal = tmp_path / "data" / "octavo.db-wal"
    size = wal.stat().st_size
    began = time.monotonic()
    for length in range(1, 200):
        store.save_answer(dataclasses.replace(answer, text="x" * length))
    assert wal.stat().st_size == size
    _wait(lambda: store.messages(chat.id)[1].text == "x" * 199)
    assert time.monotonic() - began < 1.0
    assert store.is_idle()


def test_ended_answer_is_written_at_once(store: Store) -> None:
    chat = a_chat()
    question, answer = a_turn(chat)
    store.save_turn(chat, (question, answer)).result(10)
    began = time.monotonic()
    store.save_answer(dataclasses.replace(answer, text="All.", status=Status.COMPLETE))
    _wait(lambda: store.messages(chat.id)[1].text == "All.")
    assert time.monotonic() - began < 0.45


def test_answer_of_a_deleted_chat_stays_away(store: Store) -> None:
    chat = a_chat()
    question, answer = a_turn(chat)
    store.save_turn(chat, (question, answer))
    store.save_answer(dataclasses.replace(answer, text="late"))
    store.delete_chat(chat.id)
    store.save_answer(dataclasses.replace(answer, text="later"))
    assert store.flush(10)
    assert store.messages(chat.id) == ()
    assert store.chats() == ()


def test_draft_is_replaced_and_forgotten(store: Store) -> None:
    chat = a_chat()
    store.save_draft(chat, "one")
    store.save_draft(chat, "two").result(10)
    assert (store.draft(chat.id), store.chats()) == ("two", (chat,))
    store.save_draft(chat, "").result(10)
    assert store.draft(chat.id) == ""


def test_close_writes_what_waits(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "octavo.db")
    chat = a_chat()
    question, answer = a_turn(chat)
    store.save_turn(chat, (question, answer))
    store.save_answer(dataclasses.replace(answer, text="the end", status=Status.COMPLETE))
    store.close()
    store.close()
    assert not list(tmp_path.glob("*-wal"))
    store = Store.open(tmp_path / "octavo.db")
    assert store.messages(chat.id)[1].text == "the end"
    store.close()


def test_close_gives_its_thread_back(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    Store.open(tmp_path / "octavo.db").close()
    assert set(threading.enumerate()) == before


def test_streaming_answers_of_the_last_run_are_interrupted(tmp_path: Path) -> None:
    path = tmp_path / "octavo.db"
    store = Store.open(path)
    chat = a_chat()
    question, answer = a_turn(chat, answer="so f")
    store.save_turn(chat, (question, answer)).result(10)
    store.close()
    store = Store.open(path)
    assert store.messages(chat.id) == (question, dataclasses.replace(answer, status=Status.INTERRUPTED))
    store.close()


def test_second_opening_of_one_folder_is_refused(store: Store, tmp_path: Path) -> None:
    with pytest.raises(StoreInUse, match="already running"):
        Store.open(tmp_path / "data" / "octavo.db")
    store.close()
    Store.open(tmp_path / "data" / "octavo.db").close()


def test_reading_does_not_wait_for_another_connection_that_writes(store: Store, tmp_path: Path) -> None:
    chat = a_chat()
    store.save_chat(chat).result(10)
    other = sqlite3.connect(tmp_path / "data" / "octavo.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    began = time.monotonic()
    assert store.chats() == (chat,)
    assert time.monotonic() - began < 1
    other.execute("ROLLBACK")
    other.close()


def test_hundred_thousand_messages_open_within_a_second(tmp_path: Path) -> None:
    path = tmp_path / "octavo.db"
    store = Store.open(path)
    chats = [a_chat(str(number)) for number in range(100)]
    for chat in chats:
        messages = [message for _ in range(500) for message in a_turn(chat, "Why is that so?", "Because. " * 10)]
        store.save_turn(chat, messages)
    store.close()
    began = time.monotonic()
    store = Store.open(path)
    assert len(store.chats()) == 100
    assert len(store.messages(chats[50].id)) == 1_000
    assert time.monotonic() - began < 1.0
    store.close()


def test_schema_version_is_written(store: Store, tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "data" / "octavo.db")
    assert connection.execute("PRAGMA user_version").fetchone() == (VERSION,)
    connection.close()


def _wait(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    pause = threading.Event()
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        pause.wait(0.01)
