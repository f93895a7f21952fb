"""The tokenizer and chat template of a GGUF file, rebuilt from its header."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from octavo_engine.errors import ModelLoadError
from octavo_engine.tokenization.bpe import BpeEncoder
from octavo_engine.tokenization.encoder import Encoder, SpacePrefix
from octavo_engine.tokenization.model_tokenizer import ModelTokenizer
from octavo_engine.tokenization.scored_bpe import ScoredBpeEncoder
from octavo_engine.tokenization.splits import split_named
from octavo_engine.tokenization.unigram import UnigramEncoder
from octavo_engine.tokenization.vocabulary import TokenKind, Vocabulary, checked_kinds, end_tokens

_PREFIX = "tokenizer.ggml."
_KINDS = ("gpt2", "gemma4", "llama", "t5")
# What the format takes where a SentencePiece file does not name them (llama.cpp, llama-vocab.cpp).
_SENTENCEPIECE_IDS: Mapping[str, Mapping[str, int]] = {
    "llama": {"bos": 1, "eos": 2, "unknown": 0},
    "t5": {"eos": 1, "unknown": 2, "padding": 0},
}
_NAMES = {"bos": "bos_token", "eos": "eos_token", "unknown": "unk_token", "padding": "pad_token"}
# Phi-3's files do not say that its control tokens swallow the white space after them; its own tokenizer does.
_PHI3_KEEPS = frozenset({"<unk>", "<s>", "<|endoftext|>"})


class GgufTokenizer(ModelTokenizer):
    """Byte-level BPE, or SentencePiece's BPE or unigram model, as the header says."""

    def __init__(self, metadata: Mapping[str, Any], chat_template: str | None = None) -> None:
        """Rebuild the tokenizer that a header's `metadata` describes; `chat_template` replaces the model's own.

        Raises:
            ModelLoadError: the header has no tokenizer, a damaged one, or one of a kind that Octavo does not read.
        """
        fields = _Fields(metadata)
        kind = fields.text("model")
        if kind not in _KINDS:
            raise ModelLoadError(
                "The model file holds no tokenizer; download it again."
                if kind is None
                else f"Octavo does not read tokenizers of the kind {kind!r}; it reads byte-level BPE (gpt2) and "
                "SentencePiece (llama, t5)."
            )
        if kind == "gemma4":
            split_name = kind
        else:
            split_name = fields.text("pre") or "default"
        vocabulary = _vocabulary(fields, kind, split_name)
        encoder = _encoder(fields, kind, split_name, vocabulary)
        super().__init__(vocabulary, encoder, _templates(metadata), chat_template)


class _Fields:
    """The tokenizer's values in a header, checked."""

    def __init__(self, metadata: Mapping[str, Any]) -> None:
        self._metadata = metadata

    def text(self, name: str) -> str | None:
        value = self._metadata.get(_PREFIX + name)
        return value if isinstance(value, str) else None

    def flag(self, name: str, default: bool) -> bool:
        value = self._metadata.get(_PREFIX + name)
        return value if isinstance(value, bool) else default

    def texts(self, name: str) -> Sequence[str]:
        value = self._metadata.get(_PREFIX + name)
        if not isinstance(value, tuple | list) or not set(map(type, value)) <= {str}:
            raise ModelLoadError(f"The tokenizer in the model file has no {name}; download the file again.")
        return value

    def numbers(self, name: str, kind: type) -> list[Any] | None:
        value = self._metadata.get(_PREFIX + name)
        if value is None:
            return None
        try:
            return [kind(number) for number in (value.tolist() if hasattr(value, "tolist") else value)]
        except (TypeError, ValueError, OverflowError) as fault:
            raise ModelLoadError(f"The tokenizer's {name} are no numbers; download the file again.") from fault

    def token(self, name: str, count: int, default: int | None = None) -> int | None:
        value = self._metadata.get(f"{_PREFIX}{name}_token_id", default)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < count:
            return default if default is not None and default < count else None
        return value

    @property
    def model_name(self) -> str:
        return str(self._metadata.get("general.name", "")).lower()


def _vocabulary(fields: _Fields, kind: str, split_name: str) -> Vocabulary:
    tokens = [token or f"[EMPTY_{index}]" for index, token in enumerate(fields.texts("tokens"))]
    kinds = checked_kinds(tokens, fields.numbers("token_type", int))
    defaults = _SENTENCEPIECE_IDS.get(kind, {})
    ids = {name: fields.token(name, len(tokens), defaults.get(name)) for name in _NAMES}
    ends = [ids["eos"], *(fields.token(name, len(tokens)) for name in ("eot", "eom"))]
    control = {tokens[index]: index for index, of in enumerate(kinds) if of == TokenKind.CONTROL}
    add_bos = kind == "llama" or (kind in ("gpt2", "gemma4") and split_named(split_name).add_bos)
    return Vocabulary(
        tokens,
        kinds,
        bos_id=ids["bos"],
        eos_ids=end_tokens(control, ends),
        # Files of Gemma 4 say that it has none, wrongly.
        add_bos=fields.flag("add_bos_token", add_bos) or kind == "gemma4",
        strips_right=_swallowing(fields.model_name, tokens, kinds),
        named={_NAMES[name]: tokens[token] for name, token in ids.items() if token is not None},
    )


def _swallowing(model_name: str, tokens: Sequence[str], kinds: Iterable[int]) -> frozenset[int]:
    if "phi-3" not in model_name and "phi3" not in model_name:
        return frozenset()
    whole = {int(TokenKind.CONTROL), int(TokenKind.USER_DEFINED), int(TokenKind.UNKNOWN)}
    return frozenset(index for index, kind in enumerate(kinds) if kind in whole and tokens[index] not in _PHI3_KEEPS)


def _encoder(fields: _Fields, kind: str, split_name: str, vocabulary: Vocabulary) -> Encoder:
    if kind in ("gpt2", "gemma4"):
        return BpeEncoder(vocabulary, fields.texts("merges"), split_named(split_name))
    scores = fields.numbers("scores", float) or [0.0] * len(vocabulary.tokens)
    if len(scores) < len(vocabulary.tokens):
        raise ModelLoadError(
            f"The tokenizer in the model file has {len(vocabulary.tokens)} tokens and {len(scores)} scores; "
            "download it again."
        )
    # A file that says nothing of t5's kind has no prefix, one of llama's has.
    has_prefix = fields.flag("add_space_prefix", kind == "llama")
    prefix = SpacePrefix.EACH if has_prefix else SpacePrefix.NEVER
    unknown = fields.token("unknown", len(scores), _SENTENCEPIECE_IDS[kind]["unknown"])
    if kind == "llama":
        return ScoredBpeEncoder(vocabulary, scores, space_prefix=prefix, unknown_id=unknown)
    return UnigramEncoder(
        vocabulary,
        scores,
        unknown_id=unknown,
        characters=bytes(number & 255 for number in fields.numbers("precompiled_charsmap", int) or ()),
        space_prefix=prefix,
        merges_spaces=fields.flag("remove_extra_whitespaces", False),
    )


def _templates(metadata: Mapping[str, Any]) -> dict[str, str]:
    """The model's chat templates: "default", and those that the file names, such as "tool_use"."""
    key = "tokenizer.chat_template"
    named = {
        name.removeprefix(f"{key}."): value
        for name, value in metadata.items()
        if name.startswith(f"{key}.") and isinstance(value, str)
    }
    default = metadata.get(key)
    return named | ({"default": default} if isinstance(default, str) else {})
