"""A process that streams into the store is killed: the question is there, and its answer but for a second of text."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from octavo.chat.message import Role, Status
from octavo.store import Store

# Prints "at TIME LENGTH" after each piece that it handed to the store.
_WRITER = """
import dataclasses, sys, threading, time
from datetime import UTC, datetime
from pathlib import Path
from octavo.chat.chat import Chat
from octavo.chat.identifier import new_id
from octavo.chat.message import Message, Role, Status
from octavo.store import Store

store = Store.open(Path(sys.argv[1]))
now = datetime.now(UTC)
answers = []
for number in range(8):
    chat = Chat(id=new_id(), title=str(number), created=now, updated=now)
    question = Message(id=new_id(), chat_id=chat.id, parent_id=None, role=Role.USER, status=Status.COMPLETE,
                       text="Why?", created=now)
    answer = dataclasses.replace(question, id=new_id(), parent_id=question.id, role=Role.ASSISTANT,
                                 status=Status.STREAMING, text="")
    store.save_turn(chat, (question, answer)).result()
    answers.append(answer)
print("asked", flush=True)
pause = threading.Event()
for length in range(1, 100_000):
    for answer in answers:
        store.save_answer(dataclasses.replace(answer, text="x" * length))
    print("at", time.monotonic(), length, flush=True)
    pause.wait(0.01)
"""


@pytest.mark.parametrize("lines", [0, 1, 37, 160])
def test_killed_while_eight_answers_grow(tmp_path: Path, lines: int) -> None:
    _kill_and_check(tmp_path, lines)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_killed_at_fifty_moments(tmp_path: Path) -> None:
    for number in range(50):
        _kill_and_check(tmp_path / str(number), lines=number * 3)


def _kill_and_check(folder: Path, lines: int) -> None:
    path = folder / "octavo.db"
    process = subprocess.Popen([sys.executable, "-c", _WRITER, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "asked\n"
    said = [process.stdout.readline() for _ in range(lines)]
    process.send_signal(signal.SIGKILL)
    killed = time.monotonic()
    said += process.stdout
    process.stdout.close()
    process.wait(10)
    # What it had handed over a second before its end.
    handed = [line.split() for line in said if line.endswith("\n")]
    owed = max((int(length) for _, at, length in handed if float(at) < killed - 1), default=0)
    assert owed > 0 or lines < 100

    store = Store.open(path)
    assert store.problem is None
    chats = store.chats()
    assert len(chats) == 8
    for chat in chats:
        question, answer = store.messages(chat.id)
        assert (question.role, question.text) == (Role.USER, "Why?")
        assert (answer.role, answer.status) == (Role.ASSISTANT, Status.INTERRUPTED)
        assert answer.text == "x" * len(answer.text)
        assert len(answer.text) >= owed
    store.close()
