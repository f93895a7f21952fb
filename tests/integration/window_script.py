"""Drives the real window by its fixed names, in a process that can be killed. Run by test_window_killed.

With "talk" it asks a short question, then a long one in another chat, and reports until it is killed; with "look" it
reports every chat of the list with its messages, as the window shows them.
"""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QElapsedTimer, QEventLoop, Qt, QTimer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractItemView, QApplication, QMainWindow, QWidget

from octavo.application import Application

SHORT = "What is the capital of France?"
LONG = "Write a long story about a printer who folds the sea into a book."
_DEADLINE_MS = 60_000
_LONG_ANSWER = 600


def say(**values: Any) -> None:
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()


def wait(condition: Callable[[], Any]) -> Any:
    """Run the event loop until `condition` gives something true, and give that."""
    clock = QElapsedTimer()
    clock.start()
    ticks = QTimer()
    ticks.start(10)
    while not (found := condition()):
        assert clock.elapsed() < _DEADLINE_MS, "the window did not get there in time"
        QApplication.processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents)
    return found


def child(window: QMainWindow, name: str) -> QWidget:
    found = window.findChild(QWidget, name)
    assert isinstance(found, QWidget), f"there is no {name}"
    return found


def shown(window: QMainWindow) -> list[dict[str, Any]]:
    """The messages on the shown path, from the widgets that show them."""
    transcript = child(window, "transcript")
    widgets = [window.findChild(QWidget, f"message-{name}") for name in transcript.property("messageIds")]
    return [
        {name: str(widget.property(name)) for name in ("role", "status", "source")}
        for widget in widgets
        if isinstance(widget, QWidget)
    ]


def is_shown(window: QMainWindow, chat_id: str) -> bool:
    return str(child(window, "transcript").property("chatId")) == chat_id and len(shown(window)) >= 2


def ask(window: QMainWindow, text: str) -> None:
    composer = child(window, "composer")
    composer.setFocus()
    QTest.keyClicks(composer, text)
    QTest.keyClick(composer, Qt.Key.Key_Return)


def answered(application: Application, window: QMainWindow) -> dict[str, Any] | None:
    """The shown answer once it has ended; a model that does not come to an end by itself is stopped."""
    answers = [message for message in shown(window) if message["role"] == "assistant"]
    if not answers or answers[-1]["status"] != "streaming":
        return answers[-1] if answers else None
    if len(answers[-1]["source"]) > _LONG_ANSWER:
        application.actions["message.stop"].trigger()
    return None


def talk(application: Application, window: QMainWindow) -> None:
    ask(window, SHORT)
    first = wait(lambda: answered(application, window))
    say(first=first["source"], status=first["status"])
    application.actions["chat.new"].trigger()
    ask(window, LONG)
    said = ""

    def has_grown() -> bool:
        return bool(shown(window)[-1]["role"] == "assistant" and shown(window)[-1]["source"] != said)

    while True:
        wait(has_grown)
        said = shown(window)[-1]["source"]
        say(second=said)


def look(application: Application, window: QMainWindow) -> None:
    view = child(window, "chatList")
    assert isinstance(view, QAbstractItemView)
    model = view.model()
    roles = {bytes(name.data()).decode(): role for role, name in model.roleNames().items()}
    for row in range(model.rowCount()):
        index = model.index(row, 0)
        name = index.data(roles["chatId"])
        if not name:
            continue
        QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=view.visualRect(index).center())
        wait(functools.partial(is_shown, window, name))
        say(title=index.data(roles["title"]), messages=shown(window))
    application.close()


def main() -> None:
    application = Application()
    window = application.open_window()
    wait(window.isVisible)
    say(visible=True, torch="torch" in sys.modules)
    {"talk": talk, "look": look}[sys.argv[1]](application, window)


if __name__ == "__main__":
    main()
