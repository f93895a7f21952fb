"""The window: lays the parts out and connects them to the chat that is shown. Knows no store and no engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from PySide6.QtCore import QPoint, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QAction, QCloseEvent, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QMainWindow,
    QMenu,
    QPushButton,
    QStackedWidget,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from octavo.chat.change import Change, StateChanged
from octavo.chat.session import ChatSession
from octavo.ui.chat_list import ChatList
from octavo.ui.chat_list_model import ChatListModel
from octavo.ui.composer import Composer
from octavo.ui.icon import icon
from octavo.ui.model_picker import ModelPicker
from octavo.ui.notice import Notice, Source
from octavo.ui.status_line import StatusLine
from octavo.ui.theme import Theme
from octavo.ui.transcript import Transcript
from octavo.ui.welcome import Welcome

_SIDEBAR = 264
_NARROW = 900
_DRAFT_MS = 400
_MENUS = (
    ("Chat", ("chat.new", "window.new", None, "chat.rename", "chat.delete", None, "model.open", None, "app.quit")),
    ("Message", ("message.send", "message.stop", "message.copy", "composer.focus", None, "edit.undo", "edit.redo")),
    (
        "View",
        (
            *("view.chats", None, "view.zoomIn", "view.zoomOut", "view.zoomReset", None),
            *("view.light", "view.dark", "view.followDesktop"),
        ),
    ),
)


class MainWindow(QMainWindow):
    """Shows one chat beside the list of all."""

    chatWanted = Signal(str)
    modelWanted = Signal(Path)
    modelFileWanted = Signal()
    advised = Signal(object)
    asked = Signal()
    draftChanged = Signal()
    painted = Signal()
    closed = Signal()

    def __init__(
        self,
        model: ChatListModel,
        theme: Theme,
        actions: Mapping[str, QAction],
        models: Callable[[], tuple[Path, ...]],
    ) -> None:
        super().__init__()
        self._theme = theme
        self._actions = actions
        self._session: ChatSession | None = None
        self._unsubscribe: Callable[[], None] = lambda: None
        self._sidebar_wanted = True
        self._is_painted = False
        self._has_unsaved_draft = False
        self.setObjectName("mainWindow")
        self.setWindowTitle("Octavo")
        self.resize(1180, 780)
        self.setMinimumSize(480, 420)
        self.chat_list = ChatList(model, theme)
        self.transcript = Transcript(theme)
        self.welcome = Welcome()
        self.composer = Composer(theme)
        self.notice = Notice(theme)
        self.picker = ModelPicker(models, theme)
        self.status_line = StatusLine()
        self._draft = QTimer(self)
        self._draft.setSingleShot(True)
        self._draft.setInterval(_DRAFT_MS)
        self._draft.timeout.connect(self.save_draft)
        self._lay_out()
        self._connect()
        self._restyle()

    @property
    def session(self) -> ChatSession | None:
        """The chat that is shown."""
        return self._session

    @property
    def has_unsaved_draft(self) -> bool:
        """True while what was typed has not been given to the store."""
        return self._has_unsaved_draft

    def show_session(self, session: ChatSession) -> None:
        """Show a chat, with what was typed into it."""
        if session is self._session:
            return
        self.save_draft()
        self._unsubscribe()
        self._session = session
        self._unsubscribe = session.subscribe(self._on_change)
        self.transcript.set_session(session)
        self.composer.set_text(session.draft())
        self.chat_list.show_chat(session.chat.id)
        self._show_state()
        self.composer.edit.setFocus()

    def save_draft(self) -> None:
        """Keep what is typed now instead of a moment later."""
        self._draft.stop()
        if self._has_unsaved_draft and self._session is not None:
            self._has_unsaved_draft = False
            self._session.save_draft(self.composer.text())

    def toggle_sidebar(self) -> None:
        """Show or hide the list of chats."""
        self._sidebar_wanted = self._sidebar.isHidden()
        self._sidebar.setVisible(self._sidebar_wanted)

    def _connect(self) -> None:
        self.chat_list.chosen.connect(self.chatWanted)
        self.chat_list.menuWanted.connect(self._show_menu)
        self.composer.sent.connect(self._send)
        self.composer.stopped.connect(self._stop)
        self.composer.edited.connect(self._on_edit)
        self.welcome.chosen.connect(self._send)
        self.picker.chosen.connect(self.modelWanted)
        self.picker.fileWanted.connect(self.modelFileWanted)
        self.notice.acted.connect(self.advised)
        self._theme.changed.connect(self._restyle)

    def _send(self, text: str) -> None:
        if self._session is None or self._session.is_active:
            return
        self._draft.stop()
        self._has_unsaved_draft = False
        self._session.send(text)
        self.asked.emit()

    def _stop(self) -> None:
        if self._session is not None:
            self._session.stop()

    def _on_edit(self) -> None:
        self._has_unsaved_draft = True
        self._draft.start()
        self.draftChanged.emit()

    def _on_change(self, change: Change) -> None:
        if isinstance(change, StateChanged):
            self._show_state()

    def _show_state(self) -> None:
        session = self._session
        if session is None:
            return
        self._pages.setCurrentWidget(self.transcript if session.path else self.welcome)
        self.composer.set_active(session.is_active)
        self._actions["message.stop"].setEnabled(session.is_active)
        self.setWindowTitle(f"{session.chat.title} - Octavo" if session.is_kept else "Octavo")
        self.notice.set_error(Source.CHAT, session.error)

    def _show_menu(self, chat_id: str, position: QPoint) -> None:
        self.chatWanted.emit(chat_id)
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addActions([self._actions["chat.rename"], self._actions["chat.delete"]])
        menu.popup(position)

    def _lay_out(self) -> None:
        centre = QWidget()
        column = QVBoxLayout(centre)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self._top_bar())
        middle = QHBoxLayout()
        middle.setSpacing(0)
        middle.addWidget(self._side())
        middle.addWidget(self._reading(), 1)
        column.addLayout(middle, 1)
        column.addWidget(self.status_line)
        self.setCentralWidget(centre)
        # Shortcuts work in this window without a menu bar.
        self.addActions(list(self._actions.values()))

    def _top_bar(self) -> QFrame:
        bar = QFrame()
        bar.setObjectName("topBar")
        self._fold = QToolButton()
        self._fold.setProperty("quiet", True)
        self._fold.setAccessibleName("Show or hide the chats")
        self._fold.setToolTip("Show or hide the chats")
        self._fold.clicked.connect(self._actions["view.chats"].trigger)
        wordmark = QLabel("Octavo")
        wordmark.setObjectName("wordmark")
        menu = QToolButton()
        menu.setText("Menu")
        menu.setAccessibleName("Menu")
        menu.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        menu.setMenu(self._menu())
        row = QHBoxLayout(bar)
        row.setContentsMargins(10, 7, 14, 7)
        row.setSpacing(10)
        for widget in (self._fold, wordmark, self.picker):
            row.addWidget(widget)
        row.addStretch(1)
        row.addWidget(menu)
        return bar

    def _menu(self) -> QMenu:
        menu = QMenu(self)
        for title, names in _MENUS:
            part = menu.addMenu(title)
            for name in names:
                if name is None:
                    part.addSeparator()
                else:
                    part.addAction(self._actions[name])
        return menu

    def _side(self) -> QFrame:
        self._sidebar = QFrame()
        self._sidebar.setObjectName("sidebar")
        self._new = QPushButton("New chat")
        self._new.setObjectName("newChatButton")
        self._new.setProperty("primary", True)
        self._new.clicked.connect(self._actions["chat.new"].trigger)
        column = QVBoxLayout(self._sidebar)
        column.setContentsMargins(0, 12, 1, 8)
        column.setSpacing(6)
        top = QHBoxLayout()
        top.setContentsMargins(10, 0, 10, 0)
        top.addWidget(self._new)
        column.addLayout(top)
        column.addWidget(self.chat_list, 1)
        return self._sidebar

    def _reading(self) -> QFrame:
        reading = QFrame()
        reading.setObjectName("reading")
        self._pages = QStackedWidget()
        self._pages.addWidget(self.welcome)
        self._pages.addWidget(self.transcript)
        bar = QHBoxLayout()
        bar.setContentsMargins(24, 0, 24, 0)
        bar.addStretch(1)
        bar.addWidget(self.notice, 1000)
        bar.addStretch(1)
        column = QVBoxLayout(reading)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        column.addWidget(self._pages, 1)
        column.addLayout(bar)
        column.addWidget(self.composer)
        return reading

    def _fold_away(self, width: int) -> None:
        """Hide the list of chats where the window is too narrow for it."""
        self._sidebar.setVisible(self._sidebar_wanted and width >= self._theme.pixels(_NARROW))

    def _restyle(self) -> None:
        palette = self._theme.palette
        self._fold.setIcon(icon("panel-left", palette.muted))
        self._new.setIcon(icon("plus", palette.on_accent))
        for button in (self._fold, self._new):
            button.setIconSize(QSize(self._theme.pixels(16), self._theme.pixels(16)))
        self._sidebar.setFixedWidth(self._theme.pixels(_SIDEBAR))
        self._fold_away(self.width())

    def paintEvent(self, event: QPaintEvent) -> None:
        """Tell once when the window is on the screen for the first time."""
        super().paintEvent(event)
        if not self._is_painted:
            self._is_painted = True
            # After this frame with all of its children has reached the screen.
            QTimer.singleShot(0, self, self.painted.emit)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Fold the list away where there is no room for it."""
        super().resizeEvent(event)
        self._fold_away(event.size().width())

    def closeEvent(self, event: QCloseEvent) -> None:
        """Keep what was typed."""
        self.save_draft()
        self._unsubscribe()
        self.transcript.set_session(None)
        super().closeEvent(event)
        self.closed.emit()
