"""SentencePiece's unigram model with the `tokenizers` library: the likeliest way to split a text into pieces.

White space is treated as in llama.cpp (src/llama-vocab.cpp, llm_tokenizer_ugm). Knows no special tokens.
"""

from __future__ import annotations

from collections.abc import Sequence

from tokenizers import Tokenizer, models, normalizers

from octavo_engine.tokenization.bpe import byte_named, bytes_of_vocabulary
from octavo_engine.tokenization.encoder import SpacePrefix
from octavo_engine.tokenization.library_fault import damage_in
from octavo_engine.tokenization.vocabulary import TokenKind, Vocabulary

_SPACE = "▁"
_MATCHED = frozenset(map(int, (TokenKind.NORMAL, TokenKind.USER_DEFINED, TokenKind.UNUSED)))


class UnigramEncoder:
    """Pieces with log probabilities."""

    def __init__(
        self,
        vocabulary: Vocabulary,
        scores: Sequence[float],
        *,
        unknown_id: int | None,
        characters: bytes = b"",
        space_prefix: SpacePrefix,
        merges_spaces: bool,
    ) -> None:
        """Split by `scores`; `characters` is SentencePiece's table of replaced characters.

        Raises:
            ModelLoadError: the table or the pieces are damaged.
        """
        self.space_prefix = space_prefix
        self._vocabulary = vocabulary
        self._merges_spaces = merges_spaces
        # A piece with a plain space is never found: the text has none left. So special tokens cannot be matched.
        pieces = [
            (
                token if kind in _MATCHED else f" {index}",
                0.0 if kind == TokenKind.USER_DEFINED else float(scores[index]),
            )
            for index, (token, kind) in enumerate(zip(vocabulary.tokens, vocabulary.kinds, strict=True))
        ]
        self._unknown_id = unknown_id
        self._bytes = bytes_of_vocabulary(vocabulary)
        with damage_in("The tokenizer in the model file"):
            self._library = Tokenizer(models.Unigram(pieces, unknown_id, False))
            self._characters = normalizers.Precompiled(characters) if characters else None

    def encode(self, text: str, *, prefixed: bool) -> list[int]:
        """The tokens of a text, with a space in front where `prefixed`."""
        if self._characters is not None:
            text = self._characters.normalize_str(text)
        if self._merges_spaces:
            text = "".join(f"{_SPACE}{word}" for word in text.split(" ") if word)
        else:
            bare = text.lstrip(" ")
            blanks = len(text) - len(bare)
            prefix = _SPACE if prefixed and bare else ""
            text = _SPACE * blanks + prefix + bare.replace(" ", _SPACE)
        found = self._library.encode(text, add_special_tokens=False)
        ids: list[int] = found.ids
        if not self._bytes or self._unknown_id not in ids:
            return ids
        return [
            part
            for token, (start, end) in zip(ids, found.offsets, strict=True)
            for part in (self._bytes_of(text[start:end]) if token == self._unknown_id else (token,))
        ]

    def _bytes_of(self, text: str) -> list[int]:
        return [self._bytes[byte] for byte in text.encode()]

    def token_bytes(self, token: int) -> bytes:
        """The UTF-8 bytes that a token stands for."""
        text = self._vocabulary.tokens[token]
        byte = byte_named(text) if self._vocabulary.kinds[token] == TokenKind.BYTE else None
        return text.replace(_SPACE, " ").encode() if byte is None else bytes((byte,))
