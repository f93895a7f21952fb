"""Markdown text as a list of blocks: prose as HTML, code as it is. HTML in the text stays text. Knows no Qt.

CommonMark with tables, strikethrough and task lists, parsed by markdown-it-py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from mdit_py_plugins.tasklists import tasklists_plugin

# A last line that may become a fence, a heading's underline or a table's ruler with its next character.
_UNDECIDED = re.compile(r"(?:^|\n)[ ]{0,3}(?:`{1,}[^`\n]*|~{1,}[^\n]*|[-=]{1,2}|\|[ :|-]*)\Z")


@dataclass(frozen=True, slots=True)
class Prose:
    """Paragraphs, lists, quotes, headings or a table, as HTML without scripts, styles and outside pictures."""

    html: str


@dataclass(frozen=True, slots=True)
class Code:
    """A fenced or indented block; `language` is "" where none is named."""

    language: str
    text: str


Block = Prose | Code


class _Renderer(RendererHTML):
    """HTML for a rich-text widget: pictures as links, boxes of task lists as characters."""

    def image(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        token = tokens[idx]
        text = self.renderInlineAsText(token.children or [], options, env) or "picture"
        return f'<a href="{escape(str(token.attrGet("src") or ""))}">{escape(text)}</a>'

    def td_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return self._cell("td", tokens[idx])

    def th_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return self._cell("th", tokens[idx])

    @staticmethod
    def _cell(tag: str, token: Token) -> str:
        """A cell whose alignment is an attribute: rich text gives a cell with a style of its own no border."""
        style = str(token.attrGet("style") or "")
        alignment = style.removeprefix("text-align:") or "left"
        return f'<{tag} align="{alignment}">'

    def html_inline(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        # Only the task list plugin makes these: HTML in the text is escaped.
        return "☑" if 'checked="checked"' in tokens[idx].content else "☐"


_PARSER = MarkdownIt("commonmark", {"html": False, "linkify": False}, renderer_cls=_Renderer)
_PARSER.enable(["table", "strikethrough"]).use(tasklists_plugin)


class LiveBlocks:
    """The blocks of a text that grows at its end: what cannot change any more is parsed once.

    `blocks` equal those of the whole text, but that a reference to a link which is defined later stays text.
    """

    def __init__(self, text: str = "") -> None:
        """Parse `text`."""
        self._frozen: list[Block] = []
        self._tail = ""
        self._live: list[Block] = []
        self.append(text)

    @property
    def blocks(self) -> tuple[Block, ...]:
        """All blocks of the text so far."""
        return (*self._frozen, *self._live)

    def append(self, text: str) -> None:
        """Add to the end."""
        self._tail += text
        parts = list(_split(self._tail))
        if len(parts) > 1:
            self._frozen += [block for _, block in parts[:-1]]
            start = parts[-1][0]
            self._tail = "\n".join(self._tail.split("\n")[start:])
        self._live = [block for _, block in parts[-1:]]


def parse(text: str) -> tuple[Block, ...]:
    """The blocks of a text."""
    return tuple(block for _, block in _split(text))


def settled(text: str) -> str:
    """The text without a last line that may turn into something else with the next character."""
    undecided = _UNDECIDED.search(text)
    return text if undecided is None else text[: undecided.start()]


def _split(text: str) -> Iterator[tuple[int, Block]]:
    """Each block at the outermost level, with the line that it begins in."""
    env: dict[str, object] = {}
    tokens = _PARSER.parse(text, env)
    begin = 0
    for index, token in enumerate(tokens):
        if token.level != 0 or token.nesting == 1:
            continue
        group = tokens[begin : index + 1]
        begin = index + 1
        line = group[0].map[0] if group[0].map else 0
        if token.type in ("fence", "code_block"):
            words = token.info.split()
            yield line, Code(words[0] if words else "", token.content.removesuffix("\n"))
        else:
            yield line, Prose(_PARSER.renderer.render(group, _PARSER.options, env))
