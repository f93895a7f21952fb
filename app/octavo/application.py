"""The application: the one place that knows store, engine and windows, and connects them.

Builds everything without entering the event loop. The window shows before torch is imported: the model is loaded on a
thread of its own, which starts after the first window has been painted.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QObject, Qt, QTimer, QUrl, Signal
from PySide6.QtGui import QAction, QDesktopServices
from PySide6.QtWidgets import (
    QApplication,
    QFileDialog,
    QInputDialog,
    QLineEdit,
    QMainWindow,
    QMessageBox,
    QPlainTextEdit,
)

from octavo.actions import build_actions
from octavo.chat.advice import Advice
from octavo.chat.change import ChatAdded, ChatChanged, ChatError, ChatRemoved, KeepingChanged, ListChange
from octavo.chat.chat_store import KeepError
from octavo.chat.chats import Chats
from octavo.chat.session import ChatSession
from octavo.cli.arguments import window_parser
from octavo.engine_client import Engine, EngineClient, EngineConfig, Phase, scripted_engine
from octavo.library.shelf import NoModel, Shelf
from octavo.paths import Paths, resource
from octavo.store.store import Store
from octavo.summons import Summons
from octavo.ui.chat_list_model import ChatListModel
from octavo.ui.main_window import MainWindow
from octavo.ui.notice import Source
from octavo.ui.theme import Theme

_PUMP_MS = 16
_LOOK_MS = 250
# Longer texts are not counted while they are typed.
_COUNTED = 20_000
# A file of a Hugging Face folder stands for the folder.
_MODEL_FILES = "Models (*.gguf *.safetensors config.json);;All files (*)"


class Application(QObject):
    """Octavo on the running QApplication, or on one of its own."""

    summoned = Signal()

    def __init__(
        self, home: str | os.PathLike[str] | None = None, engine: Engine | None = None, argv: Sequence[str] = ()
    ) -> None:
        """Open the store below `home` and take `engine`, or load the model that `argv` names or the starter.

        Raises:
            StoreInUse: another Octavo has this data folder open.
        """
        options = window_parser().parse_args(list(argv))
        running = QCoreApplication.instance()
        self._qt = running if isinstance(running, QApplication) else QApplication(["octavo"])
        super().__init__()
        self._qt.setApplicationName("octavo")
        self._qt.setApplicationDisplayName("Octavo")
        self._qt.setQuitOnLastWindowClosed(True)
        self._paths = Paths.find(home)
        self._paths.export()
        self._shelf = Shelf(self._paths)
        if engine is None and options.engine is not None:
            engine = scripted_engine(options.engine)
        self._store = Store.open(self._paths.database)
        model_path = None if engine is not None else self._model_file(options.files)
        config = EngineConfig(page_store=self._paths.pages)
        self._client = EngineClient(engine, model_path=model_path, config=config)
        self._chats = Chats(self._store, self._client, system=resource("prompts/system.txt").read_text().strip())
        self._theme = Theme(self._qt, self)
        self._list = ChatListModel(self._chats, self)
        self._active_before: set[str] = set()
        self._is_closed = False
        self.windows: list[MainWindow] = []
        self.actions: dict[str, QAction] = build_actions(self, self._handlers())
        self._chats.subscribe(self._on_list_change)
        self._pump = self._timer(_PUMP_MS, self._drain)
        self._look = self._timer(_LOOK_MS, self._look_at_engine)
        self._needs_load = engine is None
        self.summoned.connect(self._come_to_front)
        self._summons = self._listen()

    def open_window(self) -> QMainWindow:
        """A new window on the newest chat, or on a new one where it is shown already."""
        window = MainWindow(self._list, self._theme, self.actions, self._shelf.models)
        self.windows.append(window)
        window.chatWanted.connect(lambda chat_id: self._open_chat(window, chat_id))
        window.modelWanted.connect(self._load)
        window.modelFileWanted.connect(self._choose_model_file)
        window.advised.connect(lambda advice: self._follow(window, advice))
        window.asked.connect(self._wake)
        window.draftChanged.connect(lambda: self._count(window))
        window.closed.connect(lambda: self._on_closed(window))
        self._show(window, self._chats.new())
        window.notice.set_error(Source.KEEPING, self._chats.problem)
        window.show()
        if self._needs_load:
            self._needs_load = False
            window.painted.connect(self._load)
        self._wake()
        return window

    def is_idle(self) -> bool:
        """True when nothing is queued to the store, the engine or the windows."""
        return not (
            self._pump.isActive()
            or self._client.is_loading()
            or any(window.has_unsaved_draft for window in self.windows)
            or not self._store.is_idle()
        )

    def close(self, timeout: float = 10) -> None:
        """Keep everything, close the windows, give threads and memory back. Idempotent."""
        if self._is_closed:
            return
        self._is_closed = True
        for window in tuple(self.windows):
            window.close()
        self._pump.stop()
        self._look.stop()
        self._chats.abandon_all()
        if self._summons is not None:
            self._summons.close()
        self._client.close(timeout)
        self._store.close()

    def exec(self) -> int:
        """Run until the last window is closed; the exit code."""
        try:
            return self._qt.exec()
        finally:
            self.close()

    def _handlers(self) -> dict[str, Callable[[], object]]:
        return {
            "chat.new": lambda: self._in_front(lambda window: self._show(window, self._chats.new())),
            "window.new": self.open_window,
            "chat.rename": lambda: self._in_front(self._rename),
            "chat.delete": lambda: self._in_front(self._delete),
            "message.send": lambda: self._in_front(lambda window: window.composer.submit()),
            "message.stop": lambda: self._in_front(lambda window: window.composer.stopped.emit()),
            "message.copy": lambda: self._in_front(lambda window: window.transcript.selected_copy()),
            "composer.focus": lambda: self._in_front(lambda window: window.composer.edit.setFocus()),
            "edit.undo": lambda: self._edit("undo"),
            "edit.redo": lambda: self._edit("redo"),
            "model.open": self._choose_model_file,
            "view.chats": lambda: self._in_front(MainWindow.toggle_sidebar),
            "view.zoomIn": lambda: self._theme.zoom_by(1),
            "view.zoomOut": lambda: self._theme.zoom_by(-1),
            "view.zoomReset": lambda: self._theme.zoom_by(0),
            "view.light": lambda: self._theme.choose("light"),
            "view.dark": lambda: self._theme.choose("dark"),
            "view.followDesktop": lambda: self._theme.choose(None),
            "app.quit": self._quit,
        }

    def _in_front(self, handle: Callable[[MainWindow], object]) -> None:
        """Do it in the window that is in front, if there is one."""
        active = self._qt.activeWindow()
        window = active if isinstance(active, MainWindow) else next(reversed(self.windows), None)
        if window is not None:
            handle(window)

    def _edit(self, name: str) -> None:
        focused = self._qt.focusWidget()
        if isinstance(focused, QPlainTextEdit | QLineEdit):
            getattr(focused, name)()

    def _show(self, window: MainWindow, session: ChatSession) -> None:
        window.show_session(session)
        self._list.set_unread(session.chat.id, False)
        self._count(window)

    def _open_chat(self, window: MainWindow, chat_id: str) -> None:
        try:
            self._show(window, self._chats.open(chat_id))
        except KeepError as error:
            window.notice.set_error(Source.CHAT, ChatError(error.message, error.advice))

    def _rename(self, window: MainWindow) -> None:
        if window.session is None or not window.session.is_kept:
            return
        chat = window.session.chat
        dialog = QInputDialog(window)
        dialog.setWindowTitle("Rename chat")
        dialog.setLabelText("Title")
        dialog.setTextValue(chat.title)
        dialog.textValueSelected.connect(lambda title: self._chats.rename(chat.id, title))
        dialog.open()

    def _delete(self, window: MainWindow) -> None:
        if window.session is None or not window.session.is_kept:
            return
        chat = window.session.chat
        box = QMessageBox(window)
        box.setWindowTitle("Delete chat")
        box.setText(f"Delete “{chat.title}”?")
        box.setInformativeText("The chat and its messages are removed for good.")
        delete = box.addButton("Delete", QMessageBox.ButtonRole.DestructiveRole)
        box.setDefaultButton(box.addButton(QMessageBox.StandardButton.Cancel))
        delete.clicked.connect(lambda: self._chats.delete(chat.id))
        box.open()

    def _choose_model_file(self) -> None:
        def choose(window: MainWindow) -> None:
            dialog = QFileDialog(window, "Open a model", str(Path.home()), _MODEL_FILES)
            dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
            dialog.fileSelected.connect(lambda name: self._load(Path(name)))
            dialog.open()

        self._in_front(choose)

    def _follow(self, window: MainWindow, advice: Advice) -> None:
        """Do what a notice's button says."""
        match advice:
            case Advice.CHOOSE_MODEL:
                self._choose_model_file()
            case Advice.OPEN_FOLDER:
                QDesktopServices.openUrl(QUrl.fromLocalFile(str(self._paths.home)))
            case Advice.NEW_CHAT:
                self._show(window, self._chats.new())
            case Advice.RETRY:
                if self._client.status.phase is Phase.FAILED:
                    self._load()
                if window.session is not None and window.session.error is not None and not window.session.is_active:
                    window.session.retry()
        self._wake()

    def _load(self, path: Path | None = None) -> None:
        self._client.load(path)
        self._wake()

    def _model_file(self, files: Sequence[str]) -> Path | None:
        """The model that the command line names, or the starter; None where there is none."""
        if files:
            return Path(files[0])
        try:
            return self._shelf.find()
        except NoModel:
            return None

    def _wake(self) -> None:
        """Watch engine and store until both are quiet."""
        self._pump.start()
        self._look.start()
        self._look_at_engine()

    def _drain(self) -> None:
        if not self._chats.drain_all():
            self._pump.stop()

    def _look_at_engine(self) -> None:
        status, stats = self._client.status, self._client.stats()
        rates = {info.owner.partition("/")[0]: info.tokens_per_second for info in self._client.sequences()}
        self._list.set_rates(rates)
        problem = ChatError(status.error.message, Advice.CHOOSE_MODEL) if status.error is not None else None
        for window in self.windows:
            window.picker.show_status(status)
            window.status_line.show_stats(stats, status.text if status.error is None else "No model")
            self._count(window)
            window.notice.set_error(Source.MODEL, problem)
        if not self._pump.isActive() and not self._client.is_loading():
            self._look.stop()

    def _count(self, window: MainWindow) -> None:
        """Say how much of the model's context the shown chat takes, with what is typed."""
        total = self._client.context_length
        if window.session is None or total is None:
            window.composer.set_count("")
            return
        last = next((m for m in reversed(window.session.path) if m.prompt_tokens is not None), None)
        used = (last.prompt_tokens or 0) + (last.completion_tokens or 0) if last is not None else 0
        text = window.composer.text()
        typed = self._client.count_tokens(text) or 0 if len(text) <= _COUNTED else 0
        window.composer.set_count(f"{used + typed:,} of {total:,} tokens" if used + typed else f"{total:,} tokens")

    def _on_list_change(self, change: ListChange) -> None:
        match change:
            case KeepingChanged(error):
                for window in self.windows:
                    window.notice.set_error(Source.KEEPING, error)
            case ChatRemoved(chat_id):
                self._client.forget(chat_id)
                for window in self.windows:
                    if window.session is not None and window.session.chat.id == chat_id:
                        self._show(window, self._chats.new())
            case ChatAdded(chat) | ChatChanged(chat):
                is_active = self._chats.state(chat.id).is_active
                shown = {window.session.chat.id for window in self.windows if window.session is not None}
                if chat.id in self._active_before and not is_active and chat.id not in shown:
                    self._list.set_unread(chat.id, True)
                (self._active_before.add if is_active else self._active_before.discard)(chat.id)
        self._list.refresh()

    def _listen(self) -> Summons | None:
        """Let a second start find this one; where the folder cannot be written to, none can start anyway."""
        if self._store.is_read_only:
            return None
        return Summons(self._paths.summons, self.summoned.emit)

    def _come_to_front(self) -> None:
        def raise_(window: MainWindow) -> None:
            window.setWindowState(window.windowState() & ~Qt.WindowState.WindowMinimized)
            window.raise_()
            window.activateWindow()

        self._in_front(raise_)

    def _on_closed(self, window: MainWindow) -> None:
        if window in self.windows:
            self.windows.remove(window)
            window.deleteLater()

    def _quit(self) -> None:
        for window in tuple(self.windows):
            window.close()

    def _timer(self, milliseconds: int, handle: Callable[[], None]) -> QTimer:
        timer = QTimer(self)
        timer.setInterval(milliseconds)
        timer.timeout.connect(handle)
        return timer
