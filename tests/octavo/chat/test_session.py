"""A chat from question to answer, over a real store and an engine that follows a script."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from octavo.chat.advice import Advice
from octavo.chat.change import Change, ChatState, MessageAdded, MessageChanged, StateChanged
from octavo.chat.chats import Chats
from octavo.chat.message import Role, Status
from octavo.engine_client import EngineClient, FakeEngine, GenerationRequest, Message
from octavo.store import Store

Make = Callable[..., EngineClient]
Pump = Callable[..., None]


def test_question_is_answered_kept_and_read_back(store: Store, make_client: Make, pump: Pump) -> None:
    client = make_client("Paris, of course.")
    chats = Chats(store, client, system="Be brief.")
    session = chats.new()
    assert not session.path
    session.send("What is the capital of France?\nIn a word.")
    pump(chats)

    question, answer = session.path
    assert (question.role, question.status, question.text) == (
        Role.USER,
        Status.COMPLETE,
        "What is the capital of France?\nIn a word.",
    )
    assert (answer.role, answer.status, answer.text) == (Role.ASSISTANT, Status.COMPLETE, "Paris, of course.")
    assert (answer.model, answer.finish_reason, answer.completion_tokens) == ("Scripted", "stop", 17)
    assert answer.ttft is not None
    assert session.state is ChatState.IDLE
    assert session.chat.title == "What is the capital of France?"
    assert store.flush(10)
    assert store.chats() == (session.chat,)
    assert store.messages(session.chat.id) == session.path


def test_the_model_gets_its_own_tokens_back(store: Store, make_client: Make, pump: Pump) -> None:
    asked: list[GenerationRequest] = []

    def script(request: GenerationRequest) -> str:
        asked.append(request)
        return "Oui, é."

    client = make_client(script)
    chats = Chats(store, client)
    session = chats.new()
    session.send("Is it?")
    pump(chats)
    assert session.path[1].token_ids == tuple("Oui, é.".encode())
    # Also when the chat was read back from the store.
    assert store.flush(10)
    again = Chats(store, client)
    session = again.open(session.chat.id)
    session.send("Really?")
    pump(again, lambda: len(asked) == 2)
    messages = asked[1].messages
    assert messages is not None
    answer = messages[1]
    assert isinstance(answer, Message)
    assert answer.token_ids == tuple("Oui, é.".encode())
    session.abandon()


def test_both_messages_are_durable_before_the_engine_hears_of_them(store: Store, make_client: Make, pump: Pump) -> None:
    kept: list[list[tuple[str, str]]] = []

    def script(request: GenerationRequest) -> str:
        kept.append([(m.role, m.status) for chat in store.chats() for m in store.messages(chat.id)])
        return "Yes."

    chats = Chats(store, make_client(script))
    chats.new().send("Are you there?")
    pump(chats)
    assert kept == [[("user", "complete"), ("assistant", "streaming")]]


def test_changes_tell_the_whole_story(store: Store, make_client: Make, pump: Pump) -> None:
    chats = Chats(store, make_client("One two three four five six seven.", tokens_per_second=200))
    session = chats.new()
    changes: list[Change] = []
    session.subscribe(changes.append)
    session.send("Count")
    pump(chats)
    added = [change.message for change in changes if isinstance(change, MessageAdded)]
    assert [message.role for message in added] == [Role.USER, Role.ASSISTANT]
    assert [message.id for message in added] == [message.id for message in session.path]
    pieces = [change.appended for change in changes if isinstance(change, MessageChanged) and change.appended]
    assert len(pieces) > 1
    assert "".join(pieces) == session.path[-1].text
    states = [change.state for change in changes if isinstance(change, StateChanged)]
    assert states[0] is ChatState.QUEUED
    assert ChatState.STREAMING in states
    assert states[-1] is ChatState.IDLE


def test_model_is_given_system_prompt_and_path(store: Store, make_client: Make, pump: Pump) -> None:
    given: list[list[tuple[str, str]]] = []

    def script(request: GenerationRequest) -> str:
        messages: Any = request.messages
        given.append([(message.role, message.content) for message in messages])
        return "Good."

    chats = Chats(store, make_client(script), system="Be kind.")
    session = chats.new()
    for text in ("First", "Second"):
        session.send(text)
        pump(chats)
    assert given[-1] == [("system", "Be kind."), ("user", "First"), ("assistant", "Good."), ("user", "Second")]


def test_stop_keeps_the_text_so_far(store: Store, make_client: Make, pump: Pump) -> None:
    chats = Chats(store, make_client("word " * 2_000, tokens_per_second=400))
    session = chats.new()
    session.send("Talk")
    pump(chats, lambda: len(session.path[-1].text) > 20)
    session.stop()
    pump(chats)
    answer = session.path[-1]
    assert (answer.status, answer.finish_reason) == (Status.STOPPED, "cancelled")
    assert 20 < len(answer.text) < 10_000
    assert store.flush(10)
    assert store.messages(session.chat.id)[-1] == answer
    session.send("Again")
    assert session.is_active


def test_stop_before_the_question_is_kept_ends_it(store: Store, make_client: Make, pump: Pump) -> None:
    asked: list[object] = []

    def script(request: GenerationRequest) -> str:
        asked.append(request)
        return "Too late."

    chats = Chats(store, make_client(script))
    session = chats.new()
    session.send("Never mind")
    session.stop()
    pump(chats)
    assert session.path[-1].status is Status.STOPPED
    assert not asked


def test_failure_keeps_text_and_says_why_and_the_next_question_works(
    store: Store, make_client: Make, pump: Pump
) -> None:
    chats = Chats(store, make_client("A long answer that breaks.", fail_at=6))
    session = chats.new()
    session.send("Break")
    pump(chats)
    answer = session.path[-1]
    assert (answer.status, answer.text) == (Status.ERROR, "A long")
    assert session.state is ChatState.ERROR
    assert session.error is not None
    assert answer.error == session.error.text
    assert store.flush(10)
    assert store.messages(session.chat.id)[-1] == answer
    session.send("Once more")
    assert not session.error
    pump(chats)
    assert len(session.path) == 4


def test_retry_uses_the_same_place(store: Store, make_client: Make, pump: Pump) -> None:
    chats = Chats(store, make_client("Never whole.", fail_at=3))
    session = chats.new()
    session.send("Try")
    pump(chats)
    failed = session.path[-1]
    session.retry()
    assert session.path[-1].id == failed.id
    assert session.path[-1].text == ""
    pump(chats)
    assert len(session.path) == 2


def test_question_waits_while_the_model_loads_and_sees_how_far_it_is(store: Store, tmp_path: Path, pump: Pump) -> None:
    client = EngineClient(model_path=tmp_path / "missing.gguf")
    chats = Chats(store, client)
    session = chats.new()
    session.send("Too early")
    pump(chats, lambda: session.state is ChatState.LOADING)
    assert session.note
    client.load()
    pump(chats)
    assert session.state is ChatState.ERROR
    assert session.error is not None
    assert session.error.action is Advice.CHOOSE_MODEL
    session.send("And now")
    pump(chats)
    assert session.path[-1].error == session.error.text
    client.close()


def test_stop_while_the_model_loads(store: Store, pump: Pump) -> None:
    client = EngineClient()
    chats = Chats(store, client)
    session = chats.new()
    session.send("Too early")
    pump(chats, lambda: session.state is ChatState.LOADING)
    session.stop()
    pump(chats)
    assert session.path[-1].status is Status.STOPPED
    client.close()


def test_chats_stream_side_by_side(store: Store, make_client: Make, pump: Pump) -> None:
    chats = Chats(store, make_client("word " * 40, tokens_per_second=400))
    sessions = []
    for number in range(4):
        session = chats.new()
        session.send(f"Question {number}")
        sessions.append(session)
    pump(chats, lambda: all(session.path[-1].text for session in sessions))
    assert all(session.state is ChatState.STREAMING for session in sessions)
    pump(chats)
    assert {session.path[-1].text for session in sessions} == {"word " * 40}


def test_waiting_for_memory_is_told(store: Store, pump: Pump) -> None:
    client = EngineClient(FakeEngine("word " * 30, tokens_per_second=400, pages=24))
    chats = Chats(store, client)
    seen: set[tuple[ChatState, str]] = set()
    for number in range(4):
        session = chats.new()
        session.subscribe(lambda _, session=session: seen.add((session.state, session.note)))  # type: ignore[misc]
        session.send(f"Question {number}")
    pump(chats)
    assert any(state in (ChatState.WAITING, ChatState.QUEUED) and "in line" in note for state, note in seen)
    assert all(chats.open(chat.id).path[-1].status is Status.COMPLETE for chat in chats.all())
    client.close()


class _FullStore(Store):
    """Refuses turns with what the disk would say."""

    refusal: Exception | None = None

    def save_turn(self, *arguments: Any) -> Future[None]:
        if self.refusal is None:
            return super().save_turn(*arguments)
        refused: Future[None] = Future()
        refused.set_exception(self.refusal)
        return refused


def test_question_that_cannot_be_kept_is_not_asked_and_goes_with_the_next(
    tmp_path: Path, make_client: Make, pump: Pump
) -> None:
    from octavo.store import StoreFull

    store = _FullStore.open(tmp_path / "octavo.db")
    assert isinstance(store, _FullStore)
    asked: list[object] = []

    def script(request: GenerationRequest) -> str:
        asked.append(request)
        return "Fine."

    chats = Chats(store, make_client(script))
    session = chats.new()
    store.refusal = StoreFull("No space.", advice=Advice.RETRY)
    session.send("First")
    pump(chats)
    assert not asked
    assert session.state is ChatState.ERROR
    assert session.error is not None
    assert (session.error.text, session.error.action) == ("No space.", Advice.RETRY)
    assert [message.text for message in session.path] == ["First", ""]
    store.refusal = None
    session.send("Second")
    pump(chats)
    assert store.flush(10)
    assert [message.text for message in store.messages(session.chat.id)] == ["First", "", "Second", "Fine."]
    assert store.messages(session.chat.id) == session.path
    store.close()


def test_sending_nothing_or_while_answering_is_our_own_fault(store: Store, make_client: Make) -> None:
    chats = Chats(store, make_client("word " * 400))
    session = chats.new()
    with pytest.raises(AssertionError, match="nothing"):
        session.send("  \n")
    session.send("Go")
    with pytest.raises(AssertionError, match="on its way"):
        session.send("Faster")
    session.abandon()
