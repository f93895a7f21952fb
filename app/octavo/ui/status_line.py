"""The line at the lower edge: device, memory, speed, and that everything stays here."""

from __future__ import annotations

from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QWidget

from octavo.engine_client import EngineStats

_MEBIBYTE = 1 << 20


class StatusLine(QFrame):
    """Shows what the engine tells."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("statusLine")
        self._device = QLabel("Processor")
        self._rate = QLabel()
        self._pages = QLabel()
        row = QHBoxLayout(self)
        row.setContentsMargins(14, 5, 14, 5)
        row.setSpacing(20)
        for label in (self._device, self._rate, self._pages):
            row.addWidget(label)
        row.addStretch(1)
        self._promise = QLabel("Everything stays on this computer")
        row.addWidget(self._promise)

    def show_stats(self, stats: EngineStats | None, otherwise: str) -> None:
        """Show the engine's figures; None where there is no engine, and what is said `otherwise`."""
        self._device.setText(otherwise if stats is None else _device(stats))
        is_running = stats is not None and stats.running > 0
        self._rate.setText(f"{stats.tokens_per_second:.0f} tokens/s" if stats is not None and is_running else "")
        self._pages.setText(_pages(stats) if stats is not None and is_running else "")
        self._fit()

    def _fit(self) -> None:
        """Leave out what there is no room for, the last words first; nothing is cut in the middle."""
        room = self.width() - 28
        for label in (self._device, self._rate, self._promise, self._pages):
            room -= label.sizeHint().width() + 20
            label.setVisible(room >= -20)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Follow the width."""
        super().resizeEvent(event)
        self._fit()


def _device(stats: EngineStats) -> str:
    name = "Processor" if stats.kernel_backend.startswith("cpu") else stats.kernel_backend
    return f"{name} · {stats.device_memory / _MEBIBYTE:,.0f} MB"


def _pages(stats: EngineStats) -> str:
    used = stats.pages["private"] + stats.pages["shared"]
    return f"{used:,} of {sum(stats.pages.values()):,} pages in use"
