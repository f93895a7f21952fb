"""What an empty chat shows: one thing to know, and a few ways to begin."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

_EXAMPLES = (
    "What is the capital of France?",
    "Write a short poem about a lighthouse.",
    "Explain gravity to a ten-year-old.",
)


class Welcome(QWidget):
    """Shown in place of the transcript while a chat has no messages."""

    chosen = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("welcome")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        title = QLabel("Ask, then open another chat")
        title.setObjectName("welcomeTitle")
        title.setWordWrap(True)
        text = QLabel(
            "While one answer is being written, the others do not wait: each chat gets its next word in the same step."
        )
        text.setObjectName("welcomeText")
        text.setWordWrap(True)
        inside = QWidget()
        inside.setMaximumWidth(460)
        column = QVBoxLayout(inside)
        column.setSpacing(8)
        column.addStretch(2)
        column.addWidget(title)
        column.addWidget(text)
        column.addSpacing(16)
        for example in _EXAMPLES:
            button = QPushButton(example)
            button.setProperty("example", True)
            button.clicked.connect(lambda _=False, words=example: self.chosen.emit(words))
            column.addWidget(button)
        column.addStretch(3)
        row = QHBoxLayout(self)
        row.addStretch(1)
        row.addWidget(inside, 100)
        row.addStretch(1)
