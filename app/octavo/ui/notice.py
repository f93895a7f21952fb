"""The error bar: what happened, what it means, and a button for what can be done."""

from __future__ import annotations

import enum

from PySide6.QtCore import Property, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QToolButton, QWidget

from octavo.chat.advice import Advice
from octavo.chat.change import ChatError
from octavo.ui.icon import icon
from octavo.ui.theme import Theme

# As wide as the column that is read.
_WIDTH = 720
_LABELS = {
    Advice.RETRY: "Try again",
    Advice.CHOOSE_MODEL: "Choose a model…",
    Advice.OPEN_FOLDER: "Open the folder",
    Advice.NEW_CHAT: "New chat",
}


class Source(enum.Enum):
    """What an error is about; the first that has one is heard."""

    CHAT = enum.auto()
    KEEPING = enum.auto()
    MODEL = enum.auto()


class Notice(QFrame):
    """Shows the most important of the errors that it was told; `acted` says which advice was taken."""

    acted = Signal(object)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._errors: dict[Source, ChatError | None] = {}
        self._dismissed: set[Source] = set()
        self._shown: Source | None = None
        self.setObjectName("notice")
        self._sign = QLabel()
        self._text = QLabel()
        self._text.setWordWrap(True)
        self._button = QPushButton()
        self._button.setObjectName("actionButton")
        self._button.setAccessibleName("What can be done about it")
        self._dismiss = QToolButton()
        self._dismiss.setProperty("quiet", True)
        self._dismiss.setAccessibleName("Dismiss this message")
        row = QHBoxLayout(self)
        row.setContentsMargins(12, 8, 8, 8)
        row.setSpacing(12)
        row.addWidget(self._sign)
        row.addWidget(self._text, 1)
        row.addWidget(self._button)
        row.addWidget(self._dismiss)
        self._button.clicked.connect(self._act)
        self._dismiss.clicked.connect(self.dismiss)
        theme.changed.connect(self._restyle)
        self._restyle()
        self.hide()

    def set_error(self, source: Source, error: ChatError | None) -> None:
        """Say what is wrong with `source` now; None when nothing is.

        Of several errors the first source's is shown. One that was dismissed stays away until it is over.
        """
        if error != self._errors.get(source):
            self._dismissed.discard(source)
        self._errors[source] = error
        self._show()

    def dismiss(self) -> None:
        """Take the shown error away."""
        if self._shown is not None:
            self._dismissed.add(self._shown)
            self._show()

    def _show(self) -> None:
        wanted = (source for source in Source if self._errors.get(source) and source not in self._dismissed)
        self._shown = next(wanted, None)
        error = self._error()
        if error is None:
            self.hide()
            return
        self._text.setText(error.text)
        self.setAccessibleName(error.text)
        self._button.setVisible(error.action is not None)
        if error.action is not None:
            self._button.setText(_LABELS[error.action])
            self._button.setAccessibleName(_LABELS[error.action])
        self.show()

    def _error(self) -> ChatError | None:
        return self._errors[self._shown] if self._shown is not None else None

    def _act(self) -> None:
        error = self._error()
        if error is not None:
            self.dismiss()
            self.acted.emit(error.action)

    def _restyle(self) -> None:
        palette = self._theme.palette
        self.setMaximumWidth(self._theme.pixels(_WIDTH))
        self._sign.setPixmap(icon("triangle-alert", palette.rubric).pixmap(16, 16))
        self._dismiss.setIcon(icon("x", palette.muted))

    def _shown_text(self) -> str:
        error = self._error()
        return error.text if error is not None else ""

    text = Property(str, _shown_text)
