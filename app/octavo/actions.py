"""Every action of the application: its identifier, words and shortcut, once, for menus, shortcuts and tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from PySide6.QtCore import QObject
from PySide6.QtGui import QAction, QKeySequence

_Key = QKeySequence.StandardKey | str | None


@dataclass(frozen=True, slots=True)
class ActionSpec:
    """One action as data."""

    id: str
    text: str
    shortcut: _Key = None


SPECS = (
    ActionSpec("chat.new", "New chat", "Ctrl+N"),
    ActionSpec("window.new", "New window", "Ctrl+Shift+N"),
    ActionSpec("chat.rename", "Rename chat…", "F2"),
    ActionSpec("chat.delete", "Delete chat…"),
    ActionSpec("message.send", "Send"),
    ActionSpec("message.stop", "Stop the answer", "Esc"),
    ActionSpec("message.copy", "Copy the last message", "Ctrl+Shift+C"),
    ActionSpec("composer.focus", "Write a question", "Ctrl+L"),
    ActionSpec("edit.undo", "Undo typing"),
    ActionSpec("edit.redo", "Redo typing"),
    ActionSpec("model.open", "Open a model…", "Ctrl+O"),
    ActionSpec("view.chats", "Show or hide the chats", "Ctrl+B"),
    ActionSpec("view.zoomIn", "Larger", "Ctrl++"),
    ActionSpec("view.zoomOut", "Smaller", "Ctrl+-"),
    ActionSpec("view.zoomReset", "Normal size", "Ctrl+0"),
    ActionSpec("view.light", "Light"),
    ActionSpec("view.dark", "Dark"),
    ActionSpec("view.followDesktop", "Like the desktop"),
    ActionSpec("app.quit", "Quit", "Ctrl+Q"),
)


def build_actions(parent: QObject, handlers: Mapping[str, Callable[[], object]]) -> dict[str, QAction]:
    """An action for each of `SPECS`, by identifier; there is a handler for each and for no other."""
    assert set(handlers) == {spec.id for spec in SPECS}, "actions and handlers differ"
    actions = {}
    for spec in SPECS:
        action = QAction(spec.text, parent)
        action.setObjectName(spec.id)
        if spec.shortcut is not None:
            action.setShortcut(QKeySequence(spec.shortcut))
        action.triggered.connect(lambda _=False, handler=handlers[spec.id]: handler())
        actions[spec.id] = action
    return actions
