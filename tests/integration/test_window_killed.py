"""The window with the real model is killed while it answers: at the next start both chats are there, and the text."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).with_name("window_script.py")


@pytest.mark.timeout(180)
def test_killed_while_the_second_answer_streams(starter_model: Path, octavo_home: Path) -> None:
    seen: list[tuple[float, str]] = []
    with subprocess.Popen([sys.executable, SCRIPT, "talk"], stdout=subprocess.PIPE, text=True) as talk:
        said = _objects(talk)
        assert next(said) == {"visible": True, "torch": False}
        first = next(said)
        assert first["first"]
        for line in said:
            seen.append((time.monotonic(), line["second"]))
            # Long enough that there is something to lose, however slow the machine is.
            if seen[-1][0] - seen[0][0] > 2.5 and len(_owed(seen, seen[-1][0])) > 20:
                break
        talk.kill()
        killed = time.monotonic()
    owed = _owed(seen, killed)
    assert len(owed) > 20

    with subprocess.Popen([sys.executable, SCRIPT, "look"], stdout=subprocess.PIPE, text=True) as look:
        chats = {line["title"]: line["messages"] for line in _objects(look) if "title" in line}
        assert look.wait(30) == 0
    assert len(chats) == 2
    (question, answer) = chats["What is the capital of France?"]
    assert (question["role"], answer["role"]) == ("user", "assistant")
    assert (answer["status"], answer["source"]) == (first["status"], first["first"])
    (other,) = (messages for title, messages in chats.items() if title.startswith("Write a long story"))
    assert other[0]["source"] == "Write a long story about a printer who folds the sea into a book."
    assert other[1]["status"] == "interrupted"
    assert other[1]["source"].startswith(owed)


def _owed(seen: list[tuple[float, str]], killed: float) -> str:
    """The text that had been there for a second."""
    return [text for at, text in seen if at < killed - 1][-1]


def _objects(process: subprocess.Popen[str]) -> Iterator[dict[str, Any]]:
    assert process.stdout is not None
    for line in process.stdout:
        if line.endswith("\n"):
            yield json.loads(line)
