"""The list of chats: new, opened, renamed, deleted, and read again by the next start."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from octavo.chat.change import ChatAdded, ChatChanged, ChatRemoved, ChatState, ListChange
from octavo.chat.chats import Chats
from octavo.chat.message import Status
from octavo.engine_client import EngineClient
from octavo.store import Store

Make = Callable[..., EngineClient]
Pump = Callable[..., None]


def test_empty_chat_is_neither_listed_nor_kept_and_is_given_again(store: Store, make_client: Make) -> None:
    chats = Chats(store, make_client())
    session = chats.new()
    assert chats.new() is session
    assert chats.all() == ()
    assert store.flush(10)
    assert store.chats() == ()


def test_draft_keeps_a_chat_and_a_question_takes_the_draft_away(store: Store, make_client: Make, pump: Pump) -> None:
    chats = Chats(store, make_client())
    changes: list[ListChange] = []
    chats.subscribe(changes.append)
    session = chats.new()
    session.save_draft("half a quest")
    assert [type(change) for change in changes] == [ChatAdded]
    assert store.flush(10)
    assert Chats(store, make_client()).open(session.chat.id).draft() == "half a quest"
    session.send("half a question")
    pump(chats)
    assert store.flush(10)
    assert session.draft() == ""


def test_newest_chat_comes_first(store: Store, make_client: Make, pump: Pump) -> None:
    chats = Chats(store, make_client("Yes."))
    first = chats.new()
    first.send("First")
    second = chats.new()
    second.send("Second")
    pump(chats)
    assert [chat.title for chat in chats.all()] == ["Second", "First"]
    first.send("More")
    assert [chat.title for chat in chats.all()] == ["First", "Second"]
    pump(chats)


def test_rename(store: Store, make_client: Make, pump: Pump) -> None:
    chats = Chats(store, make_client("Yes."))
    session = chats.new()
    session.send("Hello")
    pump(chats)
    changes: list[ListChange] = []
    chats.subscribe(changes.append)
    chats.rename(session.chat.id, "  A better\nname ")
    chats.rename(session.chat.id, " ")
    assert changes == [ChatChanged(session.chat)]
    assert session.chat.title == "A better name"
    assert store.flush(10)
    again = Chats(store, make_client())
    assert again.all() == (session.chat,)
    again.rename(session.chat.id, "Renamed while closed")
    assert store.flush(10)
    assert store.chats()[0].title == "Renamed while closed"


def test_delete_while_streaming_stops_the_stream_and_leaves_nothing(
    store: Store, make_client: Make, pump: Pump, tmp_path: Path
) -> None:
    client = make_client("secretword " * 500, tokens_per_second=400)
    chats = Chats(store, client)
    kept = chats.new()
    kept.send("Stay")
    gone = chats.new()
    gone.send("Leave")
    pump(chats, lambda: all(len(session.path[-1].text) > 20 for session in (kept, gone)))
    changes: list[ListChange] = []
    chats.subscribe(changes.append)
    chats.delete(gone.chat.id)
    assert changes[-1] == ChatRemoved(gone.chat.id)
    kept.stop()
    pump(chats)
    assert store.flush(10)
    assert [chat.title for chat in store.chats()] == ["Stay"]
    assert store.messages(gone.chat.id) == ()
    pump(chats, lambda: not client.sequences())
    chats.delete(kept.chat.id)
    assert store.flush(10)
    # For good: the words are in none of the files.
    files = [path for path in (tmp_path / "data").iterdir() if path.is_file()]
    assert not [path.name for path in files if b"secretword" in path.read_bytes()]


def test_next_start_shows_the_same_chats(tmp_path: Path, make_client: Make, pump: Pump) -> None:
    path = tmp_path / "octavo.db"
    store = Store.open(path)
    chats = Chats(store, make_client("Answer."))
    for question in ("One", "Two", "Three"):
        chats.new().send(question)
    pump(chats)
    before = {chat: chats.open(chat.id).path for chat in chats.all()}
    store.close()
    store = Store.open(path)
    chats = Chats(store, make_client())
    assert {chat: chats.open(chat.id).path for chat in chats.all()} == before
    assert chats.state(chats.all()[0].id) is ChatState.IDLE
    store.close()


def test_end_of_the_program_keeps_answers_as_stopped(tmp_path: Path, make_client: Make, pump: Pump) -> None:
    path = tmp_path / "octavo.db"
    store = Store.open(path)
    chats = Chats(store, make_client("word " * 500, tokens_per_second=400))
    session = chats.new()
    session.send("Go")
    pump(chats, lambda: len(session.path[-1].text) > 20)
    chats.abandon_all()
    assert not session.is_active
    store.close()
    store = Store.open(path)
    answer = store.messages(session.chat.id)[-1]
    assert answer == session.path[-1]
    assert answer.status is Status.STOPPED
    assert len(answer.text) > 20
    store.close()


def test_unknown_chat(store: Store, make_client: Make) -> None:
    with pytest.raises(KeyError):
        Chats(store, make_client()).open("nowhere")
