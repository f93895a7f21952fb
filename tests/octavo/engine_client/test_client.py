"""The hold on the engine: loading in its own thread, questions before that, another model, closing in between."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from octavo.chat.advice import Advice
from octavo.chat.answer import AnswerEvent, Began, Broken, Ended, Held, Holdup, Text, Turn
from octavo.chat.message import Role
from octavo.engine_client import EngineClient, EngineConfig, FakeEngine, Phase
from octavo.engine_client.submission import Submission
from octavo.engine_client.translation import answer_events
from octavo_engine import Delta, Preempted, Waiting

HELLO = [Turn(Role.USER, "What is the capital of France?")]


def _wait(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    pause = threading.Event()
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        pause.wait(0.01)


def _all_of(submission: Submission) -> list[AnswerEvent]:
    events: list[AnswerEvent] = []

    def has_ended() -> bool:
        events.extend(submission.drain())
        return bool(events) and isinstance(events[-1], Ended | Broken)

    _wait(has_ended)
    return events


def test_given_engine_is_ready_and_answers() -> None:
    client = EngineClient(FakeEngine("Hello to you.", tokens_per_second=5_000))
    assert client.status.phase is Phase.READY
    assert client.model_name == "Scripted"
    events = _all_of(client.ask(HELLO, owner="a"))
    assert isinstance(events[0], Held | Began)
    assert "".join(event.text for event in events if isinstance(event, Text)) == "Hello to you."
    last = events[-1]
    assert isinstance(last, Ended)
    assert (last.reason, last.completion_tokens) == ("stop", 13)
    assert client.stats() is not None
    assert client.count_tokens("four") == 4
    client.close()


def test_question_before_the_model_is_answered_by_it(starter_model: Path) -> None:
    client = EngineClient(model_path=starter_model)
    submission = client.ask(HELLO, owner="a")
    assert (client.status.phase, client.stats(), client.count_tokens("x")) == (Phase.IDLE, None, None)
    seen = {client.status.phase}
    client.load()
    seen.add(client.status.phase)
    events: list[AnswerEvent] = []

    def has_text() -> bool:
        events.extend(submission.drain())
        return any(isinstance(event, Text) for event in events)

    _wait(has_text)
    submission.cancel()
    assert seen == {Phase.IDLE, Phase.LOADING}
    assert client.status.phase is Phase.READY
    assert isinstance(events[0], Held)
    assert events[0].holdup is Holdup.LOADING
    assert any(isinstance(event, Began) and event.prompt_tokens > 5 for event in events)
    assert isinstance(_all_of(submission)[-1], Ended)
    client.close()


def test_failed_load_is_told_to_all_and_another_model_helps(starter_model: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.gguf"
    damaged.write_bytes(b"GGUF" + bytes(100))
    client = EngineClient(model_path=damaged)
    early = client.ask(HELLO, owner="a")
    client.load()
    _wait(lambda: client.status.phase is Phase.FAILED)
    late = client.ask(HELLO, owner="b")
    for submission in (early, late):
        (*_, last) = _all_of(submission)
        assert isinstance(last, Broken)
        assert last.advice is Advice.CHOOSE_MODEL
        assert last.error == client.status.text
    client.load(starter_model)
    assert client.status.error is None
    answer = client.ask(HELLO, owner="c")
    _wait(lambda: any(isinstance(event, Text) for event in answer.drain()))
    client.close()


def test_another_model_ends_the_answers_of_the_one_before(starter_model: Path) -> None:
    client = EngineClient(FakeEngine("word " * 5_000, tokens_per_second=100))
    running = client.ask(HELLO, owner="a")
    client.load(starter_model)
    last = _all_of(running)[-1]
    assert isinstance(last, Broken)
    assert last.advice is Advice.RETRY
    _wait(lambda: client.status.phase is Phase.READY)
    assert client.model_path == starter_model
    client.close()


def test_without_any_model() -> None:
    client = EngineClient()
    submission = client.ask(HELLO, owner="a")
    client.load()
    last = _all_of(submission)[-1]
    assert isinstance(last, Broken)
    assert "Choose a model" in last.error
    client.close()


@pytest.mark.parametrize("pause", [0.0, 0.1, 0.5, 1.0])
def test_close_while_loading_gives_every_thread_back(starter_model: Path, pause: float) -> None:
    before = set(threading.enumerate())
    client = EngineClient(model_path=starter_model)
    submission = client.ask(HELLO, owner="a")
    client.load()
    threading.Event().wait(pause)
    assert client.close(timeout=30)
    assert isinstance(_all_of(submission)[-1], Ended | Broken)
    assert isinstance(_all_of(client.ask(HELLO, owner="b"))[-1], Broken)
    client.load()
    assert set(threading.enumerate()) <= before


def test_cancel_before_the_model_and_while_it_answers() -> None:
    client = EngineClient()
    waiting = client.ask(HELLO, owner="a")
    waiting.cancel()
    waiting.cancel()
    assert _all_of(waiting) == [Ended(reason="cancelled")]
    client.close()
    client = EngineClient(FakeEngine("word " * 5_000, tokens_per_second=500))
    running = client.ask(HELLO, owner="a")
    _wait(lambda: any(isinstance(event, Text) for event in running.drain()))
    running.cancel()
    last = _all_of(running)[-1]
    assert isinstance(last, Ended)
    assert last.reason == "cancelled"
    client.close()


def test_pieces_of_text_are_joined_and_waiting_is_put_in_words() -> None:
    events = answer_events(
        [
            Waiting("free pages", 1),
            Waiting("other answers to end", 22),
            Delta(0, "text", "He", (1,)),
            Delta(0, "text", "", (2,)),
            Delta(0, "text", "llo", (3,)),
            Preempted("swap"),
            Delta(0, "text", "!", (4,)),
        ],
        "M",
    )
    assert events == [
        Held(Holdup.MEMORY, "Next in line, waiting for memory"),
        Held(Holdup.QUEUED, "22nd in line"),
        Text("Hello", (1, 2, 3)),
        Held(Holdup.MEMORY, "Paused until other answers give memory back"),
        Text("!", (4,)),
    ]


@pytest.mark.parametrize(("position", "word"), [(2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th"), (113, "113th")])
def test_places_in_line(position: int, word: str) -> None:
    assert answer_events([Waiting("x", position)], "M") == [Held(Holdup.QUEUED, f"{word} in line")]


def test_a_deleted_chat_leaves_nothing_on_disk_with_and_without_its_model(starter_model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "pages"
    config = EngineConfig(page_store=folder)
    long = [Turn(Role.USER, "The history of paper is long. " * 20 + "Say yes.")]

    def open_client() -> EngineClient:
        client = EngineClient(model_path=starter_model, config=config)
        client.load()
        return client

    def pages() -> int:
        return len(list(folder.glob("*.page")))

    client = open_client()
    for owner in ("one/leaf", "two/leaf", "three/leaf"):
        submission = client.ask([*long, Turn(Role.ASSISTANT, owner * 9), Turn(Role.USER, "And now?")], owner=owner)
        _wait(lambda given=submission: any(isinstance(event, Text) for event in given.drain()))  # type: ignore[misc]
        submission.cancel()
    client.close()
    kept = pages()
    assert kept > 10
    client = open_client()
    _wait(lambda: client.status.phase is Phase.READY)
    client.forget("one")
    _wait(lambda: pages() < kept)
    client.close()
    client = EngineClient(config=config)
    client.forget("two")
    client.close()
    assert 0 < pages() < kept - 1
    client.forget("three")
    _wait(lambda: pages() == 0 and not list(folder.glob("*.owner")))
