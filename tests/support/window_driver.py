"""What a reader does with a window, for tests of it."""

from __future__ import annotations

import time
from collections.abc import Callable

from PySide6.QtCore import QEventLoop, Qt, QTimer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from octavo.application import Application
from octavo.engine_client import GenerationRequest
from octavo.ui.main_window import MainWindow


def open_window(application: Application, qtbot: QtBot) -> MainWindow:
    """A window that is on the screen."""
    window = application.open_window()
    assert isinstance(window, MainWindow)
    qtbot.waitExposed(window)
    return window


def child(window: QWidget, name: str) -> QWidget:
    """The one widget of this name."""
    found = window.findChildren(QWidget, name)
    assert len(found) == 1, f"{len(found)} widgets are called {name}"
    return found[0]


def ask(window: MainWindow, qtbot: QtBot, text: str) -> None:
    """Type a question and send it."""
    edit = child(window, "composer")
    QTest.keyClicks(edit, text)
    QTest.keyClick(edit, Qt.Key.Key_Return)


def sources(window: MainWindow) -> list[str]:
    """The markdown of the messages that are shown."""
    ids = window.transcript.property("messageIds")
    return [str(child(window, f"message-{identifier}").property("source")) for identifier in ids]


def until_idle(application: Application, qtbot: QtBot) -> None:
    """Wait until nothing is on its way."""
    qtbot.waitUntil(application.is_idle, timeout=20_000)


def echo(request: GenerationRequest) -> str:
    """A script that repeats the last message."""
    assert request.messages is not None
    last = request.messages[-1]
    return f"You said **{last.content}**."  # type: ignore[union-attr]


def spin_until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """Run an event loop until the condition holds; unlike qWait it leaves the interpreter to other threads."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        loop = QEventLoop()
        QTimer.singleShot(10, loop.quit)
        loop.exec()
