"""Line icons of one family (Lucide), drawn in the colour of the text beside them."""

from __future__ import annotations

from functools import lru_cache

from PySide6.QtCore import QByteArray, QRectF, Qt
from PySide6.QtGui import QIcon, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

from octavo.paths import resource

_SCALE = 3


def icon(name: str, colour: str, size: int = 16, *, disabled: str | None = None) -> QIcon:
    """The icon `name` of resources/icons in `colour` (#RRGGBB), sharp up to three times its size.

    `disabled` is its colour on a button that cannot be pressed.
    """
    made = QIcon(_pixmap(name, colour, size))
    if disabled is not None:
        made.addPixmap(_pixmap(name, disabled, size), QIcon.Mode.Disabled)
    return made


def _pixmap(name: str, colour: str, size: int) -> QPixmap:
    renderer = QSvgRenderer(QByteArray(_source(name).replace("currentColor", colour).encode()))
    pixmap = QPixmap(size * _SCALE, size * _SCALE)
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    renderer.render(painter, QRectF(0, 0, size * _SCALE, size * _SCALE))
    painter.end()
    pixmap.setDevicePixelRatio(_SCALE)
    return pixmap


@lru_cache
def _source(name: str) -> str:
    return resource(f"icons/{name}.svg").read_text(encoding="utf-8")
