"""SentencePiece's BPE: neighbours that join to the token with the best score are joined first; the rest are bytes.

The order of joining is llama.cpp's (src/llama-vocab.cpp, llm_tokenizer_spm). Knows no special tokens: those are never
joined to, so that no text can become one.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from operator import add

from octavo_engine.tokenization.bpe import byte_named, bytes_of_vocabulary
from octavo_engine.tokenization.encoder import SpacePrefix
from octavo_engine.tokenization.vocabulary import TokenKind, Vocabulary

_SPACE = "▁"
_JOINED = (TokenKind.UNDEFINED, TokenKind.NORMAL, TokenKind.USER_DEFINED, TokenKind.UNUSED)
_CACHED_CHARACTERS = 32
_CACHED_PIECES = 1 << 16


class ScoredBpeEncoder:
    """Tokens by score, with a byte fallback and U+2581 for spaces.

    A text is cut first where no token reaches across, which changes nothing and lets words be remembered.
    """

    def __init__(
        self, vocabulary: Vocabulary, scores: Sequence[float], *, space_prefix: SpacePrefix, unknown_id: int | None
    ) -> None:
        """Join by `scores`, one a token; `unknown_id` stands for characters without a token where bytes have none."""
        self.space_prefix = space_prefix
        self._vocabulary = vocabulary
        self._scores = scores
        self._unknown = [] if unknown_id is None else [unknown_id]
        self._bytes = bytes_of_vocabulary(vocabulary)
        self._ids = vocabulary.of_kind(*_JOINED)
        self._neighbours: frozenset[str] | None = None
        self._known: dict[str, tuple[int, ...]] = {}

    def encode(self, text: str, *, prefixed: bool) -> list[int]:
        """The tokens of a text, with a space in front where `prefixed`."""
        if not text:
            return []
        if self._neighbours is None:
            self._neighbours = frozenset(pair for token in self._ids for pair in map(add, token, token[1:]))
        text = (_SPACE if prefixed else "") + text.replace(" ", _SPACE)
        neighbours, known = self._neighbours, self._known
        cuts = [place for place, pair in enumerate(map(add, text, text[1:]), 1) if pair not in neighbours]
        ids: list[int] = []
        start = 0
        for end in (*cuts, len(text)):
            piece = text[start:end]
            start = end
            ids += known.get(piece) or self._remembered(piece)
        return ids

    def token_bytes(self, token: int) -> bytes:
        """The UTF-8 bytes that a token stands for."""
        text = self._vocabulary.tokens[token]
        byte = byte_named(text) if self._vocabulary.kinds[token] == TokenKind.BYTE else None
        return text.replace(_SPACE, " ").encode() if byte is None else bytes((byte,))

    def _remembered(self, piece: str) -> tuple[int, ...]:
        ids = tuple(self._joined(piece))
        if len(piece) <= _CACHED_CHARACTERS:
            if len(self._known) >= _CACHED_PIECES:
                self._known.clear()
            self._known[piece] = ids
        return ids

    def _joined(self, piece: str) -> list[int]:
        symbols = list(piece)
        count = len(symbols)
        before, after = list(range(-1, count - 1)), list(range(1, count + 1))
        queue: list[tuple[float, int, int, str]] = []
        known, scores = self._ids, self._scores

        def offer(left: int, right: int) -> None:
            joined = symbols[left] + symbols[right]
            token = known.get(joined)
            if token is not None:
                heapq.heappush(queue, (-scores[token], left, right, joined))

        for right in range(1, count):
            offer(right - 1, right)
        while queue:
            _, left, right, joined = heapq.heappop(queue)
            # One half may have been joined to another neighbour meanwhile.
            if not symbols[left] or not symbols[right] or len(symbols[left]) + len(symbols[right]) != len(joined):
                continue
            symbols[left], symbols[right] = joined, ""
            after[left] = after[right]
            if after[left] < count:
                before[after[left]] = left
                offer(left, after[left])
            if before[left] >= 0:
                offer(before[left], left)
        return [token for symbol in symbols if symbol for token in self._tokens_of(symbol)]

    def _tokens_of(self, symbol: str) -> Sequence[int]:
        token = self._ids.get(symbol)
        if token is not None:
            return (token,)
        return [self._bytes[byte] for byte in symbol.encode()] if self._bytes else self._unknown
