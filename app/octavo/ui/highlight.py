"""Code as HTML in the theme's colours, split into words by Pygments."""

from __future__ import annotations

from html import escape

from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.token import Token
from pygments.util import ClassNotFound

from octavo.ui.palette import Palette

# Token type of Pygments -> colour of the palette; the nearest ancestor counts.
_COLOURS = {
    Token.Keyword: "rubric",
    Token.Operator.Word: "rubric",
    Token.Name.Function: "accent",
    Token.Name.Class: "accent",
    Token.Name.Tag: "accent",
    Token.Name.Builtin: "accent",
    Token.Name.Decorator: "accent",
    Token.Literal.String: "string",
    Token.Literal.Number: "number",
    Token.Comment: "muted",
}
# Longer texts are shown without colours: a reader does not wait for them.
_LONGEST = 60_000


def code_html(text: str, language: str, palette: Palette) -> str:
    """The code as preformatted HTML; plain where the language is unknown."""
    lexer = _lexer(language) if len(text) <= _LONGEST else None
    body = escape(text) if lexer is None else "".join(_spans(text, lexer, palette))
    return f"<pre>{body}</pre>"


def _spans(text: str, lexer: Lexer, palette: Palette) -> list[str]:
    pieces = []
    for kind, value in lexer.get_tokens(text):
        colour = next((_COLOURS[ancestor] for ancestor in reversed(kind.split()) if ancestor in _COLOURS), None)
        shown = escape(value)
        pieces.append(f'<span style="color:{getattr(palette, colour)}">{shown}</span>' if colour else shown)
    if pieces:
        # The lexer ends every text with a line break.
        pieces[-1] = pieces[-1].removesuffix("\n")
    return pieces


def _lexer(language: str) -> Lexer | None:
    try:
        return get_lexer_by_name(language, stripnl=False) if language else None
    except ClassNotFound:
        return None
