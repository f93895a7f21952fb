"""The tokenizer and chat template of a Hugging Face folder: tokenizer.json, or SentencePiece's tokenizer.model."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from octavo_engine.errors import ModelLoadError
from octavo_engine.tokenization.encoder import Encoder, SpacePrefix
from octavo_engine.tokenization.library_encoder import LibraryEncoder
from octavo_engine.tokenization.model_tokenizer import ModelTokenizer
from octavo_engine.tokenization.scored_bpe import ScoredBpeEncoder
from octavo_engine.tokenization.sentencepiece_file import read_sentencepiece
from octavo_engine.tokenization.unigram import UnigramEncoder
from octavo_engine.tokenization.vocabulary import TokenKind, Vocabulary, checked_kinds, end_tokens

_MAX_FILE = 256 << 20
_NAMES = ("bos_token", "eos_token", "unk_token", "pad_token", "sep_token", "cls_token", "mask_token")
# Larger ids than any model has would make a list without measure.
_MAX_TOKENS = 4_000_000


class FolderTokenizer(ModelTokenizer):
    """What tokenizer.json or tokenizer.model says, with the settings that lie beside it."""

    def __init__(self, folder: str | os.PathLike[str], chat_template: str | None = None) -> None:
        """Read the files of `folder`; `chat_template` replaces the model's own.

        Raises:
            ModelLoadError: there is no tokenizer, a damaged one, or one of a kind that Octavo does not read.
        """
        files = _Folder(Path(folder))
        try:
            if (description := files.json("tokenizer.json")) is not None:
                vocabulary = _described_vocabulary(description, files)
                encoder: Encoder = LibraryEncoder(vocabulary, description)
            elif (data := files.read("tokenizer.model")) is not None:
                vocabulary, encoder = _from_sentencepiece(data, files)
            else:
                raise ModelLoadError(
                    f"{files.path} holds no tokenizer that Octavo reads: neither tokenizer.json nor tokenizer.model. "
                    "Get the model's other files too."
                )
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as fault:
            raise ModelLoadError(
                f"The tokenizer in {files.path} is damaged ({fault!r}); get the model again."
            ) from fault
        super().__init__(vocabulary, encoder, files.templates(), chat_template)


class _Folder:
    """The files of a model's folder, read with a limit."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.settings: Mapping[str, Any] = self.mapping("tokenizer_config.json")

    def read(self, name: str) -> bytes | None:
        path = self.path / name
        try:
            size = path.stat().st_size
            if size > _MAX_FILE:
                raise ModelLoadError(
                    f"{path} has {size:,} bytes, which no tokenizer has; get the model again.",
                    needed=size,
                    available=_MAX_FILE,
                )
            return path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as fault:
            raise ModelLoadError(f"{path} cannot be read ({fault.strerror}).") from fault

    def json(self, name: str) -> Any:
        data = self.read(name)
        if data is None:
            return None
        try:
            return json.loads(data)
        except (ValueError, RecursionError) as fault:
            raise ModelLoadError(f"{self.path / name} is damaged ({fault}); get the model again.") from fault

    def mapping(self, name: str) -> Mapping[str, Any]:
        value = self.json(name)
        return value if isinstance(value, dict) else {}

    def special(self) -> dict[str, str]:
        """The special tokens by name: bos_token, eos_token, ..."""
        found = {**self.mapping("special_tokens_map.json"), **self.settings}
        texts = {name: _content(found.get(name)) for name in _NAMES}
        return {name: text for name, text in texts.items() if text}

    def added(self) -> dict[str, Mapping[str, Any]]:
        """Added tokens that lie beside a tokenizer.model: text to {"id", "special", ...}."""
        found: dict[str, Mapping[str, Any]] = {
            text: {"id": index} for text, index in self.mapping("added_tokens.json").items()
        }
        for index, entry in (self.settings.get("added_tokens_decoder") or {}).items():
            found[entry["content"]] = {**entry, "id": int(index)}
        return found

    def end_ids(self) -> list[int]:
        """The end tokens that generation_config.json and config.json name."""
        ids: list[int] = []
        for name in ("generation_config.json", "config.json"):
            value = self.mapping(name).get("eos_token_id")
            ids += value if isinstance(value, list) else [] if value is None else [value]
        return [token for token in ids if isinstance(token, int)]

    def templates(self) -> dict[str, str]:
        """The chat templates by name; the usual one is "default"."""
        value = self.settings.get("chat_template") or self.mapping("chat_template.json").get("chat_template")
        if isinstance(value, list):
            value = {entry["name"]: entry["template"] for entry in value if {"name", "template"} <= set(entry)}
        named: dict[str, str] = {"default": value} if isinstance(value, str) else dict(value or {})
        for path in sorted((self.path / "additional_chat_templates").glob("*.jinja")):
            named[path.stem] = self._text(path)
        if (self.path / "chat_template.jinja").is_file():
            named["default"] = self._text(self.path / "chat_template.jinja")
        return named

    def _text(self, path: Path) -> str:
        data = self.read(str(path.relative_to(self.path))) or b""
        return data.decode("utf-8", errors="replace")


def _content(value: Any) -> str | None:
    """The text of a token, which may stand alone or in a description of it."""
    if isinstance(value, dict):
        value = value.get("content")
    return value if isinstance(value, str) else None


def _described_vocabulary(description: Mapping[str, Any], files: _Folder) -> Vocabulary:
    model = description["model"]
    vocabulary = model["vocab"]
    pieces = (
        {index: piece for index, (piece, _) in enumerate(vocabulary)}
        if isinstance(vocabulary, list)
        else {index: piece for piece, index in vocabulary.items()}
    )
    added = {entry["content"]: entry for entry in description.get("added_tokens") or ()}
    unknown = model.get("unk_token") or pieces.get(model.get("unk_id", -1))
    first = _first_of_template(description.get("post_processor"))
    return _joined_vocabulary(pieces, {}, added, files, unknown=unknown, begins_with=first)


def _from_sentencepiece(data: bytes, files: _Folder) -> tuple[Vocabulary, Encoder]:
    model = read_sentencepiece(data)
    pieces = dict(enumerate(model.pieces))
    kinds = dict(enumerate(model.kinds))
    bos = None if model.bos_id is None else model.pieces[model.bos_id]
    vocabulary = _joined_vocabulary(pieces, kinds, files.added(), files, unknown=None, begins_with=bos)
    scores = [*model.scores, *[0.0] * (len(vocabulary.tokens) - len(model.scores))]
    prefix = SpacePrefix.EACH if model.adds_space else SpacePrefix.NEVER
    if model.is_unigram:
        return vocabulary, UnigramEncoder(
            vocabulary,
            scores,
            unknown_id=model.unknown_id,
            characters=model.characters,
            space_prefix=prefix,
            merges_spaces=model.merges_spaces,
        )
    return vocabulary, ScoredBpeEncoder(vocabulary, scores, space_prefix=prefix, unknown_id=model.unknown_id)


def _joined_vocabulary(
    pieces: dict[int, str],
    known_kinds: Mapping[int, int],
    added: Mapping[str, Mapping[str, Any]],
    files: _Folder,
    *,
    unknown: str | None,
    begins_with: str | None,
) -> Vocabulary:
    """The vocabulary of the model's pieces and the tokens added to them."""
    named = files.special()
    kinds = dict(known_kinds)
    for text, entry in added.items():
        index = int(entry["id"])
        pieces[index] = text
        is_control = entry.get("special") or text in named.values()
        kinds[index] = int(TokenKind.CONTROL if is_control else TokenKind.USER_DEFINED)
    count = max(pieces, default=-1) + 1
    if not 0 < count <= _MAX_TOKENS or min(pieces) < 0:
        raise ModelLoadError(f"The tokenizer in {files.path} has {count:,} tokens; get the model again.")
    tokens = [pieces.get(index) or f"[EMPTY_{index}]" for index in range(count)]
    ids = {token: index for index, token in enumerate(tokens)}
    for text in named.values():
        if text in ids:
            kinds[ids[text]] = int(TokenKind.CONTROL)
    if unknown in ids:
        kinds[ids[unknown]] = int(TokenKind.UNKNOWN)
    checked = checked_kinds(tokens, (kinds.get(index, int(TokenKind.NORMAL)) for index in range(count)))
    control = {tokens[index]: index for index, kind in enumerate(checked) if kind == TokenKind.CONTROL}
    bos = named.get("bos_token", begins_with)
    add_bos = files.settings.get("add_bos_token")
    return Vocabulary(
        tokens,
        checked,
        bos_id=ids.get(bos) if bos else None,
        eos_ids=end_tokens(control, [ids.get(named.get("eos_token", "")), *_inside(files.end_ids(), count)]),
        add_bos=add_bos if isinstance(add_bos, bool) else begins_with is not None and begins_with == bos,
        strips_right=frozenset(ids[text] for text, entry in added.items() if entry.get("rstrip")),
        strips_left=frozenset(ids[text] for text, entry in added.items() if entry.get("lstrip")),
        named=named,
    )


def _inside(ids: Iterable[int], count: int) -> list[int]:
    return [token for token in ids if 0 <= token < count]


def _first_of_template(processor: Any) -> str | None:
    """The special token that tokenizer.json puts before a single text."""
    if not isinstance(processor, dict):
        return None
    for inner in processor.get("processors") or ():
        if (found := _first_of_template(inner)) is not None:
            return found
    first = (processor.get("single") or [{}])[0]
    found = first.get("SpecialToken", {}).get("id")
    return found if isinstance(found, str) else None
