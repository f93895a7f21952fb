"""Tokens to text, piece by piece, without ever showing half a character or changing what was shown."""

from __future__ import annotations

import codecs
from collections.abc import Callable


class TextStream:
    """Decodes the tokens of one answer; the pieces joined equal the text of all tokens decoded at once."""

    def __init__(self, token_bytes: Callable[[int], bytes]) -> None:
        """Decode with `token_bytes`, which gives the UTF-8 bytes that a token stands for."""
        self._token_bytes = token_bytes
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def push(self, token: int) -> str:
        """The text that this token completes; empty while a character is still open."""
        return self._decoder.decode(self._token_bytes(token))

    def end(self) -> str:
        """What was still open at the end, as U+FFFD."""
        return self._decoder.decode(b"", final=True)
