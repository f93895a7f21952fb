"""The button that names the model, says how it is, and opens another."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QColor, QIcon, QPainter, QPixmap
from PySide6.QtWidgets import QMenu, QToolButton, QWidget

from octavo.engine_client import EngineStatus, Phase
from octavo.ui.icon import icon
from octavo.ui.theme import Theme

_COLOURS = {Phase.READY: "ready", Phase.FAILED: "rubric", Phase.LOADING: "accent", Phase.IDLE: "muted"}


class ModelPicker(QToolButton):
    """`chosen` names a model file; `fileWanted` asks for the file dialog."""

    chosen = Signal(Path)
    fileWanted = Signal()

    def __init__(self, models: Callable[[], tuple[Path, ...]], theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._models = models
        self._theme = theme
        self._status: EngineStatus | None = None
        self.setObjectName("modelPicker")
        self.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        menu = QMenu(self)
        menu.aboutToShow.connect(self._fill)
        self.setMenu(menu)
        theme.changed.connect(self._show)

    def show_status(self, status: EngineStatus) -> None:
        """Show the model and how it is."""
        if status is not self._status:
            self._status = status
            self._show()

    def _show(self) -> None:
        self.setIconSize(QSize(self._theme.pixels(10), self._theme.pixels(10)))
        status = self._status
        if status is None:
            return
        name = status.model_name or "No model"
        is_loading = status.phase is Phase.LOADING and status.total > 0
        share = f" · {100 * status.done // status.total} %" if is_loading else ""
        self.setText(f" {name}{share}")
        self.setToolTip(status.text)
        self.setAccessibleName(f"Model: {name}. {status.text}")
        self.setIcon(_dot(getattr(self._theme.palette, _COLOURS[status.phase])))

    def _fill(self) -> None:
        menu = self.menu()
        menu.clear()
        for path in self._models():
            action = menu.addAction(path.stem)
            action.triggered.connect(lambda _=False, chosen=path: self.chosen.emit(chosen))
        menu.addSeparator()
        opening = menu.addAction(icon("folder-open", self._theme.palette.ink), "Open a model…")
        opening.triggered.connect(lambda: self.fileWanted.emit())


def _dot(colour: str) -> QIcon:
    pixmap = QPixmap(30, 30)
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(QColor(colour))
    painter.drawEllipse(4, 4, 22, 22)
    painter.end()
    return QIcon(pixmap)
