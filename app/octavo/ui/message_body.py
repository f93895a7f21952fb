"""The text of one message as a column of prose and code, of which only the growing end is laid out again."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeVar

from PySide6.QtCore import QUrl, Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from octavo.chat.blocks import Block, Code, LiveBlocks, Prose, settled
from octavo.ui.code_view import CodeView
from octavo.ui.flow_text import FlowText
from octavo.ui.prose_style import prose_style
from octavo.ui.theme import Theme

# Prose of one widget, in characters of HTML: enough to select from, little enough to lay out in a frame.
_GROUP = 2_000
_CARET = "▍"
_CLOSING = re.compile(r"(?:\s*</\w+>)*\s*$")
_View = TypeVar("_View", FlowText, CodeView)


@dataclass(frozen=True, slots=True)
class _Part:
    """What one widget shows."""

    block: Block
    has_caret: bool


class MessageBody(QWidget):
    """Shows Markdown that may still be growing."""

    linkActivated = Signal(QUrl)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._style = prose_style(theme)
        self._text = ""
        self._shown = LiveBlocks()
        self._settled_length = 0
        self._is_live = False
        self._parts: list[_Part] = []
        self._views: list[FlowText | CodeView] = []
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(10)

    def set_text(self, text: str, *, is_live: bool) -> None:
        """Show a text; `is_live` puts a caret at its end and holds back a line that is not decided yet."""
        self._text = text
        self._is_live = is_live
        shown = settled(text) if is_live else text
        if not is_live or not shown.startswith(self._text[: self._settled_length]):
            self._shown, self._settled_length = LiveBlocks(shown), len(shown)
        elif len(shown) > self._settled_length:
            self._shown.append(shown[self._settled_length :])
            self._settled_length = len(shown)
        self._show()

    def restyle(self) -> None:
        """Take over a change of the theme."""
        self._style = prose_style(self._theme)
        self._parts.clear()
        self._show()

    def _show(self) -> None:
        parts = self._wanted()
        for index, part in enumerate(parts):
            if index < len(self._parts) and self._parts[index] == part and index < len(self._views):
                continue
            self._fill(index, part)
        for view in self._views[len(parts) :]:
            self._column.removeWidget(view)
            view.deleteLater()
        del self._views[len(parts) :]
        self._parts = parts

    def _wanted(self) -> list[_Part]:
        """The blocks with neighbouring prose joined."""
        joined: list[Block] = []
        for block in self._shown.blocks:
            last = joined[-1] if joined else None
            if isinstance(block, Prose) and isinstance(last, Prose) and len(last.html) < _GROUP:
                joined[-1] = Prose(last.html + block.html)
            else:
                joined.append(block)
        if self._is_live and not joined:
            joined.append(Prose("<p></p>"))
        return [_Part(block, self._is_live and block is joined[-1]) for block in joined]

    def _fill(self, index: int, part: _Part) -> None:
        caret = f'<span style="color:{self._theme.palette.rubric}">{_CARET}</span>' if part.has_caret else ""
        if isinstance(part.block, Code):
            self._code_view(index).show_block(part.block, self._style, caret)
        else:
            html = part.block.html
            self._prose_view(index).show_html(_with_caret(html, caret), self._style)

    def _code_view(self, index: int) -> CodeView:
        view = self._views[index] if index < len(self._views) else None
        return view if isinstance(view, CodeView) else self._put(index, CodeView(self._theme))

    def _prose_view(self, index: int) -> FlowText:
        view = self._views[index] if index < len(self._views) else None
        if isinstance(view, FlowText):
            return view
        made = self._put(index, FlowText())
        made.setAccessibleName("Text")
        made.linkActivated.connect(self.linkActivated)
        return made

    def _put(self, index: int, view: _View) -> _View:
        """Show a new widget at `index`, in place of one of the other kind if there is one."""
        if index < len(self._views):
            before = self._views[index]
            self._column.replaceWidget(before, view)
            before.deleteLater()
            self._views[index] = view
        else:
            self._column.addWidget(view)
            self._views.append(view)
        return view


def _with_caret(html: str, caret: str) -> str:
    """The caret behind the last word, inside all elements that end there."""
    end = _CLOSING.search(html)
    return html[: end.start()] + caret + html[end.start() :] if caret and end else html + caret
