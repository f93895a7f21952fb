"""The line at the lower edge: device, memory, speed, and that everything stays here."""

from __future__ import annotations

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
        row.addWidget(QLabel("Everything stays on this computer"))

    def show_stats(self, stats: EngineStats | None, otherwise: str) -> None:
        """Show the engine's figures; None where there is no engine, and what is said `otherwise`."""
        if stats is None:
            self._device.setText(otherwise)
            self._rate.setText("")
            self._pages.setText("")
            return
        self._device.setText(f"{_device(stats.kernel_backend)} · {stats.device_memory / _MEBIBYTE:,.0f} MB")
        self._rate.setText(f"{stats.tokens_per_second:.0f} tokens/s" if stats.running else "")
        used = stats.pages["private"] + stats.pages["shared"]
        self._pages.setText(f"{used:,} of {sum(stats.pages.values()):,} pages in use" if stats.running else "")


def _device(backend: str) -> str:
    return "Processor" if backend.startswith("cpu") else backend
