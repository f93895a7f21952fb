"""Tokens to text, piece by piece, without ever showing half a character or changing what was shown."""

from __future__ import annotations

import codecs
from collections.abc import Callable


class TextStream:
    """Decodes the tokens of one answer; the pieces joined equal the text of all tokens decoded at once."""

    def __init__(self, token_bytes: Callable[[int], bytes], *, drops_space: bool = False) -> None:
        """Decode with `token_bytes`, which gives the UTF-8 bytes that a token stands for.

        With `drops_space` a space in front of the first text is left out: it marks the beginning of a text only.
        """
        self._token_bytes = token_bytes
        self._drops_space = drops_space
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def push(self, token: int) -> str:
        """The text that this token completes; empty while a character is still open."""
        part = self._token_bytes(token)
        if self._drops_space and part:
            self._drops_space = False
            part = part.removeprefix(b" ")
        return self._decoder.decode(part)

    def end(self) -> str:
        """What was still open at the end, as U+FFFD."""
        return self._decoder.decode(b"", final=True)
