"""The splitting of a tokenizer.json, carried out by the `tokenizers` library itself.

Knows no special tokens: those are taken out of its vocabulary, so that no text can become one, and the space that it
would put before a text is put by whoever knows where a text begins.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tokenizers import Tokenizer, models

from octavo_engine.errors import ModelLoadError
from octavo_engine.tokenization.bpe import byte_named, byte_of_character
from octavo_engine.tokenization.encoder import SpacePrefix
from octavo_engine.tokenization.library_fault import damage_in
from octavo_engine.tokenization.vocabulary import TokenKind, Vocabulary

_SPACE = "▁"
_KEPT = ("unk_token", "byte_fallback", "fuse_unk", "continuing_subword_prefix", "end_of_word_suffix")


class LibraryEncoder:
    """A normaliser, a pre-tokenizer and a model as the file describes them."""

    def __init__(self, vocabulary: Vocabulary, description: Mapping[str, Any]) -> None:
        """Build from the parsed tokenizer.json.

        Raises:
            ModelLoadError: the file is damaged, or its kind of model is not one that chat models have.
        """
        self._vocabulary = vocabulary
        rest = {part: description.get(part) for part in ("normalizer", "pre_tokenizer")}
        self.space_prefix = _space_prefix(rest)
        self._is_byte_level = "ByteLevel" in json.dumps([rest, description.get("decoder")])
        self._byte_of = byte_of_character()
        with damage_in("tokenizer.json"):
            model = _model(description["model"], vocabulary)
            self._with_space, self._without = (_library(rest, model, has_prefix=has) for has in (True, False))

    def encode(self, text: str, *, prefixed: bool) -> list[int]:
        """The tokens of a text, with a space in front where `prefixed`."""
        library = self._with_space if prefixed else self._without
        ids: list[int] = library.encode(text, add_special_tokens=False).ids
        return ids

    def token_bytes(self, token: int) -> bytes:
        """The UTF-8 bytes that a token stands for."""
        text, kind = self._vocabulary.tokens[token], self._vocabulary.kinds[token]
        if self._is_byte_level and kind == TokenKind.USER_DEFINED:
            return text.encode()
        if self._is_byte_level:
            return b"".join(self._byte_of.get(character) or character.encode() for character in text)
        byte = byte_named(text)
        return text.replace(_SPACE, " ").encode() if byte is None else bytes((byte,))


def _model(description: Mapping[str, Any], vocabulary: Vocabulary) -> Any:
    special = {int(TokenKind.CONTROL), int(TokenKind.UNKNOWN)}
    kind = description.get("type") or ("Unigram" if isinstance(description["vocab"], list) else "BPE")
    if kind == "BPE":
        ids = {
            token: index
            for token, index in description["vocab"].items()
            if vocabulary.kinds[index] not in special or token == description.get("unk_token")
        }
        merges = [merge.split(" ", 1) if isinstance(merge, str) else merge for merge in description["merges"]]
        settings = {name: value for name in _KEPT if (value := description.get(name)) is not None}
        return models.BPE(
            vocab=ids,
            merges=[(left, right) for left, right in merges if left in ids and right in ids],
            ignore_merges=bool(description.get("ignore_merges")),
            **settings,
        )
    if kind == "Unigram":
        unknown = description.get("unk_id")
        # A piece with a plain space is never found: the text has none left. So special tokens cannot be matched.
        pieces = [
            (f" {index}" if vocabulary.kinds[index] in special else piece, score)
            for index, (piece, score) in enumerate(description["vocab"])
        ]
        return models.Unigram(pieces, unknown, bool(description.get("byte_fallback")))
    raise ModelLoadError(f"Octavo does not read tokenizers of the kind {kind!r}; it reads BPE and Unigram.")


def _library(rest: Mapping[str, Any], model: Any, *, has_prefix: bool) -> Tokenizer:
    """The library's tokenizer, which puts a space before every text that it is given, or before none."""
    parts = json.loads(json.dumps(rest))
    for step in _steps(parts["pre_tokenizer"]):
        if step.get("type") == "Metaspace":
            step.pop("add_prefix_space", None)
            step["prepend_scheme"] = "always" if has_prefix else "never"
        elif step.get("type") == "ByteLevel":
            step["add_prefix_space"] = has_prefix and bool(step.get("add_prefix_space"))
    for step in _steps(parts["normalizer"]):
        if not has_prefix and _prepends(step):
            step["prepend"] = ""
    empty = {"type": "BPE", "vocab": {}, "merges": []}
    library = Tokenizer.from_str(json.dumps({"version": "1.0", "added_tokens": [], "model": empty, **parts}))
    library.model = model
    return library


def _space_prefix(rest: Mapping[str, Any]) -> SpacePrefix:
    if any(_prepends(step) for step in _steps(rest["normalizer"])):
        return SpacePrefix.EACH
    schemes = {"always": SpacePrefix.EACH, "first": SpacePrefix.FIRST, "never": SpacePrefix.NEVER}
    for step in _steps(rest["pre_tokenizer"]):
        adds = step.get("add_prefix_space", step.get("type") == "Metaspace")
        if step.get("type") in ("Metaspace", "ByteLevel"):
            return schemes[step.get("prepend_scheme") or ("always" if adds else "never")]
    return SpacePrefix.NEVER


def _prepends(step: Mapping[str, Any]) -> bool:
    return step.get("type") == "Prepend" and step.get("prepend") in (_SPACE, " ")


def _steps(part: Any) -> list[dict[str, Any]]:
    """The parts of a sequence, or the one part."""
    if not isinstance(part, dict):
        return []
    inner = part.get("normalizers") or part.get("pretokenizers")
    return [step for one in inner for step in _steps(one)] if isinstance(inner, list) else [part]
