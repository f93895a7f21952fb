"""Byte-level BPE with the `tokenizers` library: merges over byte characters, after a split into words.

Knows no special tokens: those are not in its vocabulary, so that no text can become one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from octavo_engine.tokenization.encoder import SpacePrefix
from octavo_engine.tokenization.library_fault import damage_in
from octavo_engine.tokenization.splits import Split
from octavo_engine.tokenization.vocabulary import TokenKind, Vocabulary

_SPACE = "▁"


class BpeEncoder:
    """Merges of a vocabulary, over byte characters or, where the split says so, over text with U+2581 for spaces."""

    space_prefix = SpacePrefix.NEVER

    def __init__(self, vocabulary: Vocabulary, merges: Sequence[str], split: Split) -> None:
        """Build from `merges` ("left right", best first).

        Raises:
            ModelLoadError: a merge names a token that is not in the vocabulary.
        """
        self._vocabulary = vocabulary
        self._escapes = split.escapes_spaces
        self._library = _library(vocabulary, merges, split)
        self._byte_of = byte_of_character()

    def encode(self, text: str, *, prefixed: bool) -> list[int]:
        """The tokens of a text."""
        ids: list[int] = self._library.encode(text, add_special_tokens=False).ids
        return ids

    def token_bytes(self, token: int) -> bytes:
        """The UTF-8 bytes that a token stands for."""
        text, kind = self._vocabulary.tokens[token], self._vocabulary.kinds[token]
        if kind == TokenKind.USER_DEFINED:
            return text.encode()
        if not self._escapes:
            return b"".join(self._byte_of.get(character) or character.encode() for character in text)
        byte = byte_named(text) if kind == TokenKind.BYTE else None
        return text.replace(_SPACE, " ").encode() if byte is None else bytes((byte,))


def _library(vocabulary: Vocabulary, merges: Iterable[str], split: Split) -> Tokenizer:
    special = vocabulary.of_kind(TokenKind.CONTROL, TokenKind.UNKNOWN)
    ids = {token: index for index, token in enumerate(vocabulary.tokens) if token not in special}
    # A space inside a merge parts it; one in front belongs to the left half.
    cuts = [(merge, merge.find(" ", 1)) for merge in merges]
    pairs = [(merge[:cut], merge[cut + 1 :]) for merge, cut in cuts]
    if any(left + right in special for left, right in pairs):
        # Some files have merges that lead to control tokens.
        pairs = [(left, right) for left, right in pairs if not {left, right, left + right} & special.keys()]
    with damage_in("The tokenizer in the model file"):
        if any(cut < 1 for _, cut in cuts):
            raise ValueError("a merge has one part only")
        model = models.BPE(vocab=ids, merges=pairs, ignore_merges=split.whole_words, byte_fallback=split.escapes_spaces)
    tokenizer = Tokenizer(model)
    words = [pre_tokenizers.Split(Regex(pattern), behavior="isolated") for pattern in split.patterns]
    if split.escapes_spaces:
        tokenizer.normalizer = normalizers.Replace(" ", _SPACE)
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*words])
    else:
        byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*words, byte_level])
        tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def byte_named(text: str) -> int | None:
    """The byte that a token such as <0x0A> names, or None."""
    if len(text) == 6 and text.startswith("<0x") and text.endswith(">"):
        try:
            return int(text[3:5], 16)
        except ValueError:
            return None
    return None


def bytes_of_vocabulary(vocabulary: Vocabulary) -> dict[int, int]:
    """The token of each byte, where the vocabulary has one for all 256; else none."""
    named = {byte_named(text): token for text, token in vocabulary.of_kind(TokenKind.BYTE).items()}
    found = {byte: token for byte, token in named.items() if byte is not None}
    return found if len(found) == 256 else {}


def byte_of_character() -> dict[str, bytes]:
    """The byte that each character of a byte-level vocabulary stands for (GPT-2's bytes_to_unicode)."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = (byte for byte in range(256) if byte not in printable)
    table = {chr(byte): bytes((byte,)) for byte in printable}
    return table | {chr(256 + index): bytes((byte,)) for index, byte in enumerate(others)}
