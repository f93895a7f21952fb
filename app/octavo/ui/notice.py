"""The error bar: what happened, what it means, and a button for what can be done."""

from __future__ import annotations

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


class Notice(QFrame):
    """Shows one `ChatError`; `acted` says which advice was taken."""

    acted = Signal(object)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._error: ChatError | None = None
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
        self._dismiss.clicked.connect(self.hide)
        theme.changed.connect(self._restyle)
        self._restyle()
        self.hide()

    def show_error(self, error: ChatError | None) -> None:
        """Show an error; None takes the bar away."""
        self._error = error
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

    def _act(self) -> None:
        if self._error is not None:
            self.acted.emit(self._error.action)

    def _restyle(self) -> None:
        palette = self._theme.palette
        self.setMaximumWidth(self._theme.pixels(_WIDTH))
        self._sign.setPixmap(icon("triangle-alert", palette.rubric).pixmap(16, 16))
        self._dismiss.setIcon(icon("x", palette.muted))

    def _shown_text(self) -> str:
        return self._error.text if self._error is not None else ""

    text = Property(str, _shown_text)
