"""The look in force: palette, zoom and the style sheet made of them. One for the whole application."""

from __future__ import annotations

import os
from string import Template

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontDatabase, QGuiApplication, QPalette
from PySide6.QtWidgets import QApplication

from octavo.paths import resource
from octavo.ui.palette import DARK, LIGHT, Palette

THEME_VARIABLE = "OCTAVO_THEME"
ZOOM_STEPS = (80, 90, 100, 110, 125, 150, 175, 200)
# Sizes at 100 %, in pixels.
_SIZES = {"body": 14, "control": 13, "meta": 12, "wordmark": 15, "title": 22}
_FAMILIES = ("Inter", "Cantarell", "Noto Sans", "Segoe UI", "DejaVu Sans")


class Theme(QObject):
    """Follows the desktop's light or dark unless one is chosen, by the user or by OCTAVO_THEME."""

    changed = Signal()

    def __init__(self, application: QApplication, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._application = application
        self._zoom = 100
        self._chosen: Palette | None = {"light": LIGHT, "dark": DARK}.get(os.environ.get(THEME_VARIABLE, ""))
        self._template = Template(resource("styles/window.qss").read_text(encoding="utf-8"))
        self._family = _ui_family()
        QGuiApplication.styleHints().colorSchemeChanged.connect(self._apply)
        self._apply()

    @property
    def palette(self) -> Palette:
        """The colours in force."""
        if self._chosen is not None:
            return self._chosen
        is_dark = QGuiApplication.styleHints().colorScheme() == Qt.ColorScheme.Dark
        return DARK if is_dark else LIGHT

    @property
    def zoom(self) -> int:
        """Per cent."""
        return self._zoom

    def size(self, name: str) -> int:
        """A type size in pixels: body, control, meta, wordmark or title."""
        return self.pixels(_SIZES[name])

    def pixels(self, length: int) -> int:
        """A length at 100 % in pixels of this zoom."""
        return round(length * self._zoom / 100)

    def choose(self, name: str | None) -> None:
        """Use "light" or "dark" from now on; None follows the desktop."""
        self._chosen = {"light": LIGHT, "dark": DARK}.get(name or "")
        self._apply()

    def zoom_by(self, steps: int) -> None:
        """Go so many steps up or down; 0 goes back to 100 %."""
        index = ZOOM_STEPS.index(self._zoom) + steps if steps else ZOOM_STEPS.index(100)
        self._zoom = ZOOM_STEPS[max(0, min(len(ZOOM_STEPS) - 1, index))]
        self._apply()

    def font(self, name: str = "body", *, bold: bool = False) -> QFont:
        """A font for what is painted by hand, with figures that keep their width."""
        font = QFont(self._family)
        font.setPixelSize(self.size(name))
        font.setFeature(QFont.Tag("tnum"), 1)
        if bold:
            font.setWeight(QFont.Weight.DemiBold)
        return font

    def code_font(self) -> QFont:
        """The monospaced face."""
        font = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
        font.setPixelSize(self.size("control"))
        return font

    def colour(self, name: str) -> QColor:
        """A colour of the palette by its name."""
        return QColor(getattr(self.palette, name))

    def _apply(self) -> None:
        colours = {name: getattr(self.palette, name) for name in Palette.__slots__}
        sizes = {name: self.size(name) for name in _SIZES}
        self._application.setFont(self.font())
        self._application.setPalette(self._qt_palette())
        self._application.setStyleSheet(self._template.substitute(colours, **sizes))
        self.changed.emit()

    def _qt_palette(self) -> QPalette:
        palette = QPalette()
        roles = {
            QPalette.ColorRole.Window: "background",
            QPalette.ColorRole.Base: "raised",
            QPalette.ColorRole.AlternateBase: "paper",
            QPalette.ColorRole.Button: "raised",
            QPalette.ColorRole.Text: "ink",
            QPalette.ColorRole.WindowText: "ink",
            QPalette.ColorRole.ButtonText: "ink",
            QPalette.ColorRole.PlaceholderText: "muted",
            QPalette.ColorRole.Highlight: "accent",
            QPalette.ColorRole.HighlightedText: "on_accent",
            QPalette.ColorRole.Link: "accent",
            QPalette.ColorRole.ToolTipBase: "raised",
            QPalette.ColorRole.ToolTipText: "ink",
        }
        for role, name in roles.items():
            palette.setColor(role, self.colour(name))
        return palette


def _ui_family() -> str:
    """The first of the good families that is installed, otherwise the system's own."""
    installed = set(QFontDatabase.families())
    system = QFontDatabase.systemFont(QFontDatabase.SystemFont.GeneralFont).family()
    return next((family for family in _FAMILIES if family in installed), system)
