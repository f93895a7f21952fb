"""A block of code: its language, two small tools, and the text in colours."""

from __future__ import annotations

from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QToolButton, QVBoxLayout, QWidget

from octavo.chat.blocks import Code
from octavo.ui.flow_text import FlowText
from octavo.ui.highlight import code_html
from octavo.ui.theme import Theme


class CodeView(QFrame):
    """Shows one `Code` block."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._block = Code("", "")
        self.setProperty("code", True)
        self._language = QLabel()
        self._language.setProperty("meta", True)
        self._wrap = _tool("Wrap", "Break long lines")
        self._wrap.setCheckable(True)
        self._copy = _tool("Copy", "Copy this code")
        self._text = FlowText(wraps=False)
        self._text.setAccessibleName("Code")
        header = QFrame()
        header.setProperty("codeHeader", True)
        row = QHBoxLayout(header)
        row.setContentsMargins(14, 4, 6, 4)
        row.setSpacing(0)
        row.addWidget(self._language, 1)
        row.addWidget(self._wrap)
        row.addWidget(self._copy)
        body = QVBoxLayout()
        body.setContentsMargins(14, 10, 14, 10)
        body.addWidget(self._text)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(header)
        column.addLayout(body)
        self._wrap.toggled.connect(self._text.set_wraps)
        self._copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(self._block.text))

    def show_block(self, block: Code, style: str, caret: str = "") -> None:
        """Show a block, with `caret` (HTML) behind it while it is being written."""
        self._block = block
        self._language.setText(block.language or "text")
        html = code_html(block.text, block.language, self._theme.palette)
        self._text.show_html(html.removesuffix("</pre>") + caret + "</pre>" if caret else html, style)


def _tool(text: str, name: str) -> QToolButton:
    button = QToolButton()
    button.setText(text)
    button.setToolTip(name)
    button.setAccessibleName(name)
    button.setProperty("quiet", True)
    return button
