"""What every kind of tokenizer offers below control tokens: plain text to ids, and an id's bytes."""

from __future__ import annotations

import enum
from typing import Protocol


class SpacePrefix(enum.Enum):
    """Where an encoder puts a space that the text does not have."""

    NEVER = "never"
    # Before the first text only.
    FIRST = "first"
    # Before the first text and after each token that is taken whole.
    EACH = "each"


class Encoder(Protocol):
    """Splits plain text into tokens. Never gives a control token, whatever the text spells."""

    @property
    def space_prefix(self) -> SpacePrefix:
        """Where `encode` is to be told that a space is due."""
        ...

    def encode(self, text: str, *, prefixed: bool) -> list[int]:
        """The tokens of a text without lone surrogates, with a space in front where `prefixed`."""
        ...

    def token_bytes(self, token: int) -> bytes:
        """The UTF-8 bytes that a token stands for."""
        ...
