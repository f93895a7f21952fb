"""`octavo chat` with a scripted engine: what it prints, what it remembers, how it ends."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from octavo.cli import chat_command, main
from octavo.cli.conversation import Conversation
from octavo.cli.opened_model import OpenedModel
from octavo.engine_client import EngineConfig, FakeEngine, GenerationRequest

Capture = pytest.CaptureFixture[str]
FIELDS = [
    "text",
    "reasoning",
    "finish_reason",
    "prompt_tokens",
    "cached_tokens",
    "completion_tokens",
    "ttft_s",
    "tokens_per_second",
    "load_s",
    "model",
    "seed",
]


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[GenerationRequest]:
    """Has the command talk to an engine that answers "Answer N." and hands its requests over."""
    seen: list[GenerationRequest] = []

    def script(request: GenerationRequest) -> str:
        seen.append(request)
        return f"Answer {len(seen)}."

    _install(monkeypatch, lambda: FakeEngine(script, tokens_per_second=5_000))
    return seen


def _install(monkeypatch: pytest.MonkeyPatch, make: Callable[[], FakeEngine]) -> None:
    @contextmanager
    def opened(_: str | None, __: EngineConfig) -> Iterator[OpenedModel]:
        engine = make()
        try:
            yield OpenedModel(engine, 0.5)
        finally:
            engine.close()

    monkeypatch.setattr(chat_command, "opened_model", opened)


def _contents(request: GenerationRequest) -> list[tuple[str, str]]:
    messages: Any = request.messages
    return [(message.role, message.content) for message in messages]


def test_prompt_is_answered_in_words(requests: list[GenerationRequest], capsys: Capture) -> None:
    assert main(["chat", "--prompt", "Hello", "--system", "Be kind.", "--temperature", "0", "--max-tokens", "99"]) == 0
    assert capsys.readouterr() == ("Answer 1.\n", "")
    assert _contents(requests[0]) == [("system", "Be kind."), ("user", "Hello")]
    assert (requests[0].sampling.temperature, requests[0].sampling.max_tokens) == (0, 99)


def test_empty_system_prompt_leaves_it_out(requests: list[GenerationRequest]) -> None:
    assert main(["chat", "--prompt", "Hello", "--system", ""]) == 0
    assert _contents(requests[0]) == [("user", "Hello")]


def test_json_has_exactly_the_fields(requests: list[GenerationRequest], capsys: Capture) -> None:
    assert main(["chat", "--prompt", "Hello", "--json", "--seed", "7"]) == 0
    out, err = capsys.readouterr()
    answer = json.loads(out)
    assert list(answer) == FIELDS
    assert (answer["text"], answer["finish_reason"], answer["seed"], answer["load_s"]) == ("Answer 1.", "stop", 7, 0.5)
    assert (answer["completion_tokens"], answer["model"]) == (9, "Scripted")
    assert err == ""


def test_stream_has_a_line_for_each_event(requests: list[GenerationRequest], capsys: Capture) -> None:
    assert main(["chat", "--prompt", "Hello", "--stream"]) == 0
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert "started" in [event["event"] for event in events]
    assert events[-1]["event"] == "finished"
    assert events[-1]["reason"] == "stop"
    assert "".join(event["text"] for event in events if event["event"] == "delta") == "Answer 1."


def test_stream_with_json_ends_with_the_object(requests: list[GenerationRequest], capsys: Capture) -> None:
    assert main(["chat", "--prompt", "Hello", "--stream", "--json"]) == 0
    assert list(json.loads(capsys.readouterr().out.splitlines()[-1])) == FIELDS


def test_pipe_is_answered_line_by_line_and_remembers(
    requests: list[GenerationRequest], capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("One\r\n\n  \nTwo"))
    assert main(["chat", "--system", ""]) == 0
    assert capsys.readouterr().out == "Answer 1.\nAnswer 2.\n"
    assert _contents(requests[1]) == [("user", "One"), ("assistant", "Answer 1."), ("user", "Two")]


def test_nothing_is_written(requests: list[GenerationRequest], octavo_home: Path) -> None:
    assert main(["chat", "--prompt", "Hello"]) == 0
    assert not octavo_home.exists()


@pytest.mark.parametrize("prompt", ["", "  \n\t"])
def test_empty_prompt_is_refused_before_a_model_is_loaded(prompt: str, capsys: Capture) -> None:
    assert main(["chat", "--prompt", prompt, "--json"]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert list(error) == ["type", "message", "needed", "available"]
    assert (error["type"], error["needed"]) == ("InvalidRequest", None)
    assert "empty" in error["message"]


def test_failure_in_the_middle(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    _install(monkeypatch, lambda: FakeEngine("A long answer", fail_at=4))
    assert main(["chat", "--prompt", "Hello", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["error"]["message"]
    assert main(["chat", "--prompt", "Hello"]) == 1
    out, err = capsys.readouterr()
    assert out.startswith("A lo")
    assert err.startswith("octavo: ")
    assert main(["chat", "--prompt", "Hello", "--stream"]) == 1
    last = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert last["event"] == "failed"
    assert list(last["error"]) == ["type", "message", "needed", "available"]


def test_value_out_of_range_is_a_usage_error(requests: list[GenerationRequest], capsys: Capture) -> None:
    assert main(["chat", "--prompt", "Hello", "--temperature", "-1", "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["type"] == "InvalidRequest"
    assert main(["chat", "--prompt", "Hello", "--temperature", "-1", "--stream"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["type"] == "InvalidRequest"


@pytest.mark.parametrize(
    "arguments", [["chat", "--temprature", "1"], ["chat", "--seed", "x"], ["--no-such-flag"], ["--engine", "real"]]
)
def test_unknown_flags_are_usage_errors(arguments: list[str], capsys: Capture) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "usage: octavo" in capsys.readouterr().err


def test_ctrl_c_keeps_what_was_said_and_ends_with_130(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    _install(monkeypatch, lambda: FakeEngine("word " * 1_000, tokens_per_second=300))

    class Interrupting(Conversation):
        def ask(self, question: str, on_event: Callable[[Any], None]) -> Any:
            count = 0

            def interrupt(event: Any) -> None:
                nonlocal count
                count += 1
                on_event(event)
                if count == 20:
                    raise KeyboardInterrupt

            return super().ask(question, interrupt)

    monkeypatch.setattr(chat_command, "Conversation", Interrupting)
    assert main(["chat", "--prompt", "Hello", "--json"]) == 130
    answer = json.loads(capsys.readouterr().out)
    assert answer["finish_reason"] == "cancelled"
    assert answer["text"].startswith("word ")
