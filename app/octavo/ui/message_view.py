"""One message of the transcript: who says it, the text, and what can be done with it."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt, QUrl, Signal
from PySide6.QtGui import QEnterEvent, QGuiApplication
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QToolButton, QVBoxLayout, QWidget

from octavo.chat.blocks import Code, parse
from octavo.chat.message import Message, Role, Status
from octavo.ui.highlight import code_html
from octavo.ui.icon import icon
from octavo.ui.message_body import MessageBody
from octavo.ui.theme import Theme

# Characters of a message that are laid out at once.
_SHOWN = 20_000
_ENDINGS = {
    Status.STOPPED: "Stopped",
    Status.INTERRUPTED: "Interrupted: Octavo was closed while this was being written",
    Status.ERROR: "Not finished",
}
_REASONS = {
    "length": "Ended at the length limit",
    "context": "Ended: the model's context is full",
    "memory": "Ended: no memory for more",
}


class MessageView(QFrame):
    """Shows one `Message`; has Qt properties messageId, role, status and source."""

    linkActivated = Signal(QUrl)

    def __init__(self, message: Message, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._message = message
        self._note = ""
        self.setObjectName(f"message-{message.id}")
        self._author = QLabel()
        self._author.setProperty("author", True)
        self._meta = QLabel()
        self._meta.setProperty("meta", True)
        self._ending = QLabel()
        self._ending.setProperty("meta", True)
        self._ending.setWordWrap(True)
        self._body = MessageBody(theme)
        self._body.linkActivated.connect(self.linkActivated)
        self._copy = QToolButton()
        self._copy.setObjectName("copyButton")
        self._copy.setText("Copy")
        self._copy.setAccessibleName("Copy this message")
        self._copy.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self._copy.setProperty("quiet", True)
        self._copy.clicked.connect(self.copy)
        self._rest = QToolButton()
        self._rest.setObjectName("restButton")
        self._rest.setAccessibleName("Show the whole message")
        self._rest.clicked.connect(self._show_all)
        self._is_whole = False
        self._is_faded = True
        self._lay_out()
        self._restyle_icons()
        self.set_message(message)

    @property
    def message(self) -> Message:
        """What is shown."""
        return self._message

    def set_message(self, message: Message) -> None:
        """Show a later state of the message."""
        self._message = message
        for name, value in (("messageId", message.id), ("role", message.role.value), ("status", message.status.value)):
            self.setProperty(name, value)
        self.setProperty("source", message.text)
        is_user = message.role is Role.USER
        self._author.setText("You" if is_user else message.model or "Octavo")
        self.setAccessibleName(f"{self._author.text()}: {message.text[:200]}")
        is_live = message.status is Status.STREAMING
        self._show_text()
        self._body.setVisible(bool(message.text) or is_live)
        self._show_meta()
        self._show_tools()

    def _show_text(self) -> None:
        """Show the text, or its beginning where a pasted book would hold the window up."""
        text, is_live = self._message.text, self._message.status is Status.STREAMING
        is_cut = len(text) > _SHOWN and not is_live and not self._is_whole
        self._body.set_text(text[:_SHOWN] if is_cut else text, is_live=is_live)
        self._rest.setVisible(is_cut)
        if is_cut:
            self._rest.setText(f"Show the other {len(text) - _SHOWN:,} characters")

    def _show_all(self) -> None:
        self._is_whole = True
        self._show_text()

    def set_note(self, note: str) -> None:
        """Say what an answer without text is at."""
        self._note = note
        self._show_meta()

    def restyle(self) -> None:
        """Take over a change of the theme."""
        self._restyle_icons()
        self._body.restyle()

    def copy(self) -> None:
        """Put the Markdown source on the clipboard, and rich text beside it."""
        # Qt destroys the clipboard's contents after Python has ended, where an object made in Python would crash: the
        # clipboard makes its own, and the rich text is added to that.
        clipboard = QGuiApplication.clipboard()
        clipboard.setText(self._message.text)
        clipboard.mimeData().setHtml(
            "".join(
                code_html(block.text, "", self._theme.palette) if isinstance(block, Code) else block.html
                for block in parse(self._message.text)
            )
        )

    def _lay_out(self) -> None:
        head = QHBoxLayout()
        head.addWidget(self._author)
        head.addStretch(1)
        head.addWidget(self._meta)
        tools = QHBoxLayout()
        tools.setContentsMargins(0, 0, 0, 0)
        tools.setSpacing(4)
        tools.addWidget(self._copy)
        tools.addStretch(1)
        # The tools keep their place while they are hidden, so that nothing moves under the pointer.
        self._tools = QWidget()
        self._tools.setLayout(tools)
        self._tools.setFixedHeight(self._copy.sizeHint().height() + 2)
        body: QWidget = self._body
        if self._message.role is Role.USER:
            body = QFrame()
            body.setProperty("bubble", True)
            inside = QVBoxLayout(body)
            inside.setContentsMargins(14, 10, 14, 0)
            inside.addWidget(self._body)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        column.addLayout(head)
        column.addWidget(body)
        column.addWidget(self._rest, alignment=Qt.AlignmentFlag.AlignLeft)
        column.addWidget(self._ending)
        column.addWidget(self._tools)
        self._copy.installEventFilter(self)

    def _show_meta(self) -> None:
        message = self._message
        is_waiting = message.status is Status.STREAMING and not message.text
        parts = []
        if message.role is Role.ASSISTANT and message.ttft is not None:
            parts.append(f"first word {message.ttft:.2f} s")
            rest = (message.seconds or 0) - message.ttft
            if message.completion_tokens and message.completion_tokens > 1 and rest > 0:
                parts.append(f"{(message.completion_tokens - 1) / rest:.0f} tokens/s")
        self._meta.setText(self._note if is_waiting else " · ".join(parts))
        ending = _ENDINGS.get(message.status) or _REASONS.get(message.finish_reason or "", "")
        if message.status is Status.ERROR and message.error:
            ending = message.error
        self._ending.setText(ending)
        self._ending.setVisible(bool(ending))

    def _show_tools(self) -> None:
        is_wanted = bool(self._message.text) and (self.underMouse() or self._copy.hasFocus())
        # A button in the colour of the paper can still be reached with the keyboard.
        if self._is_faded == is_wanted:
            self._is_faded = not is_wanted
            self._restyle_icons()

    def _restyle_icons(self) -> None:
        palette = self._theme.palette
        colour = palette.paper if self._is_faded else palette.muted
        self._copy.setIcon(icon("copy", colour))
        self._copy.setStyleSheet(f"color: {colour};" if self._is_faded else "")

    def enterEvent(self, event: QEnterEvent) -> None:
        """Show the tools."""
        super().enterEvent(event)
        self._show_tools()

    def leaveEvent(self, event: QEvent) -> None:
        """Hide the tools."""
        super().leaveEvent(event)
        self._show_tools()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Show the tools while one has the focus."""
        if event.type() in (QEvent.Type.FocusIn, QEvent.Type.FocusOut):
            self._show_tools()
        return super().eventFilter(watched, event)
