"""The transcript: the messages of one chat in a column, and a latch that follows their end.

Only the reader changes the latch: scrolling up lets go, reaching the end or "jump to latest" takes hold again.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from PySide6.QtCore import Property, Qt, QTimer, QUrl, Signal, Slot
from PySide6.QtGui import QResizeEvent, QWheelEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QScrollArea, QVBoxLayout, QWidget

from octavo.chat.change import Change, MessageAdded, MessageChanged, StateChanged
from octavo.chat.message import Message, Status
from octavo.chat.session import ChatSession
from octavo.ui.icon import icon
from octavo.ui.message_view import MessageView
from octavo.ui.theme import Theme

_COLUMN = 720
_MARGIN = 24
# Messages that get widgets at once; the ones before them when the reader comes near.
_BATCH = 12
_FRAME_MS = 33
_NEAR = 400


class Transcript(QScrollArea):
    """Shows one session at a time."""

    linkActivated = Signal(QUrl)
    followingChanged = Signal(bool)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._session: ChatSession | None = None
        self._unsubscribe: Callable[[], None] | None = None
        self._views: dict[str, MessageView] = {}
        self._dirty: dict[str, Message] = {}
        self._following = True
        self.setObjectName("transcript")
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAccessibleName("Conversation")
        self._lay_out()
        self._frame = QTimer(self)
        self._frame.setSingleShot(True)
        self._frame.setInterval(_FRAME_MS)
        self._frame.timeout.connect(self._render)
        bar = self.verticalScrollBar()
        bar.rangeChanged.connect(self._on_range)
        bar.actionTriggered.connect(lambda _: QTimer.singleShot(0, self, self._on_reader_scroll))
        bar.sliderMoved.connect(self._on_reader_scroll)
        bar.valueChanged.connect(self._on_value)
        theme.changed.connect(self._restyle)

    def set_session(self, session: ChatSession | None) -> None:
        """Show another chat, at its end."""
        if session is self._session:
            return
        if self._unsubscribe is not None:
            self._unsubscribe()
        for view in self._views.values():
            self._column.removeWidget(view)
            view.hide()
            view.deleteLater()
        self._views.clear()
        self._dirty.clear()
        self._session = session
        self._set_following(True)
        if session is not None:
            self._unsubscribe = session.subscribe(self._on_change)
            for message in session.path[-_BATCH:]:
                self._add(message)
            self._show_note()
        self._place_jump()

    @Slot(str)
    def showMessage(self, message_id: str) -> None:
        """Scroll to a message, which gets its widget if it has none yet."""
        if message_id not in self._message_ids():
            return
        while message_id not in self._views:
            self._load_earlier()
        self._set_following(False)
        self._outer.activate()
        self.verticalScrollBar().setValue(self._views[message_id].y())

    @Slot()
    def jump_to_latest(self) -> None:
        """Go to the end and follow it."""
        self._set_following(True)
        self._to_end()

    def source(self) -> str:
        """The Markdown of the last message; "" where there is none."""
        path = self._session.path if self._session is not None else ()
        return path[-1].text if path else ""

    def selected_copy(self) -> None:
        """Copy the last answer, or the last message where there is none."""
        if self._views:
            list(self._views.values())[-1].copy()

    def _lay_out(self) -> None:
        column = QWidget()
        column.setObjectName("transcriptColumn")
        self._content = column
        self._outer = outer = QHBoxLayout(column)
        outer.setContentsMargins(_MARGIN, _MARGIN, _MARGIN, _MARGIN)
        inside = QWidget()
        inside.setObjectName("transcriptColumn")
        self._inside = inside
        inside.setMaximumWidth(self._theme.pixels(_COLUMN))
        self._column = QVBoxLayout(inside)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(6)
        self._column.addStretch(1)
        outer.addStretch(1)
        outer.addWidget(inside, 1000)
        outer.addStretch(1)
        self.setWidget(column)
        self._jump = QPushButton("Jump to latest", self)
        self._jump.setObjectName("jumpToLatest")
        self._jump.setAccessibleName("Jump to the latest message")
        self._jump.setIcon(icon("arrow-down", self._theme.palette.ink))
        self._jump.clicked.connect(self.jump_to_latest)
        self._jump.hide()

    def _on_change(self, change: Change) -> None:
        match change:
            case MessageAdded(message):
                self._add(message)
                self.jump_to_latest()
            case MessageChanged(message):
                self._dirty[message.id] = message
                if message.status is not Status.STREAMING:
                    self._render()
                elif not self._frame.isActive():
                    self._frame.start()
            case StateChanged():
                self._show_note()

    def _render(self) -> None:
        """Lay out what has changed since the last frame."""
        started = time.perf_counter()
        dirty, self._dirty = self._dirty, {}
        for identifier, message in dirty.items():
            view = self._views.get(identifier)
            if view is not None:
                view.set_message(message)
        # A text that takes long to lay out gets fewer frames: three quarters of the time belong to everything else.
        spent = round(1000 * (time.perf_counter() - started))
        self._frame.setInterval(max(_FRAME_MS, 4 * spent))

    def _show_note(self) -> None:
        if self._session is not None and self._views:
            list(self._views.values())[-1].set_note(self._session.note)

    def _add(self, message: Message) -> None:
        self._views[message.id] = self._made(message)
        # Above the stretch, which keeps short chats at the top.
        self._column.insertWidget(self._column.count() - 1, self._views[message.id])

    def _made(self, message: Message) -> MessageView:
        view = MessageView(message, self._theme)
        view.linkActivated.connect(self.linkActivated)
        return view

    def _load_earlier(self) -> None:
        """Give widgets to the messages before the first shown one, without moving what is being read."""
        if self._session is None or not self._views:
            return
        path = self._session.path
        first = len(path) - len(self._views)
        earlier = path[max(0, first - _BATCH) : first]
        if not earlier:
            return
        anchor = next(iter(self._views.values()))
        before = anchor.y() - self.verticalScrollBar().value()
        made = {message.id: self._made(message) for message in earlier}
        for index, view in enumerate(made.values()):
            self._column.insertWidget(index, view)
        self._views = made | self._views
        self._outer.activate()
        self._content.adjustSize()
        self.verticalScrollBar().setValue(anchor.y() - before)

    def _on_range(self) -> None:
        if self._following:
            self._to_end()

    def _on_value(self, value: int) -> None:
        if not self._following and value < _NEAR:
            self._load_earlier()

    def _on_reader_scroll(self) -> None:
        """The reader has moved: follow if the end is in sight, let go otherwise."""
        bar = self.verticalScrollBar()
        self._set_following(bar.value() >= bar.maximum() - 4)

    def _to_end(self) -> None:
        self.verticalScrollBar().setValue(self.verticalScrollBar().maximum())

    def _set_following(self, following: bool) -> None:
        if following != self._following:
            self._following = following
            self.followingChanged.emit(following)
        self._jump.setVisible(not following)
        self._place_jump()

    def _place_jump(self) -> None:
        size = self._jump.sizeHint()
        self._jump.resize(size)
        self._jump.move((self.width() - size.width()) // 2, self.height() - size.height() - 12)

    def _restyle(self) -> None:
        self._inside.setMaximumWidth(self._theme.pixels(_COLUMN))
        self._jump.setIcon(icon("arrow-down", self._theme.palette.ink))
        for view in self._views.values():
            view.restyle()

    def _message_ids(self) -> list[str]:
        return [message.id for message in self._session.path] if self._session is not None else []

    def _chat_id(self) -> str:
        return self._session.chat.id if self._session is not None else ""

    def _leaf_id(self) -> str:
        ids = self._message_ids()
        return ids[-1] if ids else ""

    def _is_following(self) -> bool:
        return self._following

    chatId = Property(str, _chat_id)
    leafId = Property(str, _leaf_id)
    messageIds = Property(list, _message_ids)
    following = Property(bool, _is_following)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """A turn of the wheel is the reader's."""
        super().wheelEvent(event)
        self._on_reader_scroll()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep the button in the middle of the lower edge."""
        super().resizeEvent(event)
        self._place_jump()
