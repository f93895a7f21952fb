"""A tokenizer whose tokens are the bytes of UTF-8, for engines without a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from octavo_engine.request import Message

_BOUNDARY = 256


class ByteTokenizer:
    """Tokens 0 to 255 are bytes; 256 separates messages and ends an answer."""

    bos_id: int | None = None
    eos_ids = frozenset({_BOUNDARY})
    vocab_size = 257

    def encode(self, text: str, *, add_bos: bool = False, parse_special: bool = True) -> list[int]:
        """The bytes of the text."""
        return list(text.encode("utf-8", errors="replace"))

    def decode(self, ids: Sequence[int], *, skip_special: bool = False) -> str:
        """The text of the bytes; broken ones become U+FFFD."""
        return b"".join(map(self.token_bytes, ids)).decode("utf-8", errors="replace")

    def token_bytes(self, token: int) -> bytes:
        """The byte that a token stands for; none for the boundary."""
        return bytes((token,)) if token < _BOUNDARY else b""

    def begins_text(self, ids: Sequence[int]) -> bool:
        """Never: every space is text."""
        return False

    def count(self, text_or_messages: str | Sequence[Message | Mapping[str, Any]]) -> int:
        """Number of tokens of a text or of a conversation."""
        if isinstance(text_or_messages, str):
            return len(self.encode(text_or_messages))
        return len(self.apply_chat_template(text_or_messages))

    def apply_chat_template(
        self,
        messages: Sequence[Message | Mapping[str, Any]],
        *,
        tools: Sequence[Any] | None = None,
        generation_prompt: bool = True,
        options: Mapping[str, Any] | None = None,
    ) -> list[int]:
        """Role and text of each message, a boundary after each."""
        tokens: list[int] = []
        for message in map(Message.of, messages):
            tokens += [*self.encode(f"{message.role}\n{message.content}"), _BOUNDARY]
        return tokens + (self.encode("assistant\n") if generation_prompt else [])
