"""Where a question is written: a field that grows with it, and the one button that sends or stops."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QSize, Qt, Signal
from PySide6.QtGui import QFocusEvent, QInputMethodEvent, QKeyEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QPlainTextEdit,
    QPushButton,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from octavo.ui.icon import icon
from octavo.ui.theme import Theme

_MOST_LINES = 10
_WIDTH = 720


class QuestionEdit(QPlainTextEdit):
    """The text field: Enter submits, Shift Enter breaks the line, an input method's Enter does neither."""

    submitted = Signal()
    focused = Signal(bool)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._is_composing = False
        self.setObjectName("composer")
        self.setAccessibleName("Your question")
        self.setPlaceholderText("Ask anything. Shift Enter for a new line.")
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setTabChangesFocus(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.document().setDocumentMargin(0)
        self.textChanged.connect(self.fit)

    def fit(self) -> None:
        """Be as high as the text, up to ten lines."""
        line = self.fontMetrics().lineSpacing()
        lines = max(1, min(_MOST_LINES, round(self.document().size().height())))
        self.setFixedHeight(lines * line + 4)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Submit on Enter."""
        is_enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        breaks = event.modifiers() & (Qt.KeyboardModifier.ShiftModifier | Qt.KeyboardModifier.AltModifier)
        if is_enter and self._is_composing:
            event.ignore()
        elif is_enter and not breaks:
            self.submitted.emit()
        else:
            super().keyPressEvent(event)

    def inputMethodEvent(self, event: QInputMethodEvent) -> None:
        """Remember whether an input method is in the middle of a word."""
        self._is_composing = bool(event.preeditString())
        super().inputMethodEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Tell the frame."""
        super().focusInEvent(event)
        self.focused.emit(True)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Tell the frame."""
        super().focusOutEvent(event)
        self.focused.emit(False)

    def minimumSizeHint(self) -> QSize:
        """As narrow as the layout wants."""
        return QSize(0, self.minimumHeight())


class Composer(QWidget):
    """The lower part of the reading column."""

    sent = Signal(str)
    stopped = Signal()
    edited = Signal(str)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.setObjectName("composerArea")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.edit = QuestionEdit()
        self._count = QLabel()
        self._count.setObjectName("tokenCount")
        self.send_button = QPushButton("Send")
        self.send_button.setObjectName("sendButton")
        self.send_button.setProperty("primary", True)
        self.send_button.setAccessibleName("Send the question")
        self.stop_button = QPushButton("Stop")
        self.stop_button.setObjectName("stopButton")
        self.stop_button.setAccessibleName("Stop the answer")
        self._box = QFrame()
        self._box.setObjectName("composerBox")
        self._lay_out()
        self.edit.submitted.connect(self._send)
        self.edit.textChanged.connect(self._on_text)
        self.edit.focused.connect(self._on_focus)
        self.send_button.clicked.connect(self._send)
        self.stop_button.clicked.connect(self.stopped)
        theme.changed.connect(self._restyle)
        self._restyle()
        self.set_active(False)

    def text(self) -> str:
        """What is written."""
        return self.edit.toPlainText()

    def set_text(self, text: str) -> None:
        """Show a draft; it counts as no edit."""
        if text != self.text():
            self.edit.blockSignals(True)
            self.edit.setPlainText(text)
            self.edit.blockSignals(False)
            self.edit.fit()
        cursor = self.edit.textCursor()
        cursor.movePosition(cursor.MoveOperation.End)
        self.edit.setTextCursor(cursor)
        self._update_button()

    def set_active(self, active: bool) -> None:
        """Offer to stop the answer that is on its way, or to send."""
        had_focus = self.send_button.hasFocus() or self.stop_button.hasFocus()
        self._is_active = active
        self.stop_button.setVisible(active)
        self.send_button.setVisible(not active)
        if had_focus:
            self.edit.setFocus()
        self._update_button()

    def set_count(self, text: str) -> None:
        """Show how much of the context is taken."""
        self._count.setText(text)

    def submit(self) -> None:
        """Send what is written, as the button does."""
        self._send()

    def _send(self) -> None:
        text = self.text()
        if text.strip() and not self._is_active:
            self.set_text("")
            self.sent.emit(text.strip("\n"))

    def _on_text(self) -> None:
        self._update_button()
        self.edited.emit(self.text())

    def _update_button(self) -> None:
        self.send_button.setEnabled(bool(self.text().strip()))

    def _on_focus(self, focused: bool) -> None:
        self._box.setProperty("focused", focused)
        self._box.style().unpolish(self._box)
        self._box.style().polish(self._box)

    def _restyle(self) -> None:
        palette = self._theme.palette
        self._box.setMaximumWidth(self._theme.pixels(_WIDTH))
        for button in (self.stop_button, self.send_button):
            button.setIconSize(QSize(self._theme.pixels(14), self._theme.pixels(14)))
        self.stop_button.setIcon(icon("square", palette.rubric, 12))
        self.send_button.setIcon(icon("arrow-up", palette.on_accent, disabled=palette.muted))
        self.edit.fit()

    def _lay_out(self) -> None:
        row = QHBoxLayout()
        row.addWidget(self._count)
        row.addStretch(1)
        row.addWidget(self.stop_button)
        row.addWidget(self.send_button)
        inside = QVBoxLayout(self._box)
        inside.setContentsMargins(14, 12, 10, 10)
        inside.setSpacing(8)
        inside.addWidget(self.edit)
        inside.addLayout(row)
        outer = QHBoxLayout(self)
        outer.setContentsMargins(24, 12, 24, 14)
        outer.addStretch(1)
        outer.addWidget(self._box, 1000)
        outer.addStretch(1)
        self._box.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """A click anywhere in the box is meant for the field."""
        if watched is self._box and event.type() == QEvent.Type.MouseButtonPress:
            self.edit.setFocus()
        return super().eventFilter(watched, event)
