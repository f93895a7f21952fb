"""Reads SentencePiece's tokenizer.model: pieces and the few settings that matter. Knows no tokenizer.

The file is one message in protocol buffers' wire format; field numbers are those of sentencepiece_model.proto.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from octavo_engine.errors import ModelLoadError
from octavo_engine.tokenization.vocabulary import TokenKind

_VARINT, _EIGHT_BYTES, _BYTES, _FOUR_BYTES = 0, 1, 2, 5
_UNIGRAM, _BPE = 1, 2
_DAMAGED = "tokenizer.model is damaged, or no file of SentencePiece; get the model again, with its tokenizer.json."


@dataclass(slots=True)
class SentencePieceModel:
    """What a tokenizer.model says.

    Attributes:
        pieces, scores, kinds: one a token; kinds as in `TokenKind`.
        is_unigram: whether pieces are chosen by likelihood, else joined by score.
        unknown_id, bos_id, eos_id: None where there is none.
        characters: SentencePiece's compiled table of replaced characters.
        adds_space: whether a text gets a space in front.
        merges_spaces: whether runs of spaces become one.
    """

    pieces: list[str] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    kinds: list[int] = field(default_factory=list)
    is_unigram: bool = True
    unknown_id: int | None = 0
    bos_id: int | None = 1
    eos_id: int | None = 2
    characters: bytes = b""
    adds_space: bool = True
    merges_spaces: bool = True


def read_sentencepiece(data: bytes) -> SentencePieceModel:
    """Read the bytes of a tokenizer.model.

    Raises:
        ModelLoadError: they are none, or of a kind of model other than BPE and unigram.
    """
    model = SentencePieceModel()
    try:
        for number, value in _fields(data):
            if number == 1:
                _read_piece(model, _bytes(value))
            elif number == 2:
                _read_trainer(model, _bytes(value))
            elif number == 3:
                _read_normalizer(model, _bytes(value))
    except (ValueError, IndexError, struct.error) as fault:
        raise ModelLoadError(_DAMAGED) from fault
    if not model.pieces:
        raise ModelLoadError(_DAMAGED)
    return model


def _read_piece(model: SentencePieceModel, data: bytes) -> None:
    piece, score, kind = "", 0.0, int(TokenKind.NORMAL)
    for number, value in _fields(data):
        if number == 1:
            piece = _bytes(value).decode()
        elif number == 2:
            (score,) = struct.unpack("<f", _bytes(value))
        elif number == 3:
            kind = _number(value)
    model.pieces.append(piece)
    model.scores.append(score)
    model.kinds.append(kind)


def _read_trainer(model: SentencePieceModel, data: bytes) -> None:
    for number, value in _fields(data):
        if number == 3:
            kind = _number(value)
            if kind not in (_UNIGRAM, _BPE):
                raise ModelLoadError("tokenizer.model splits by words or characters, which no chat model does.")
            model.is_unigram = kind == _UNIGRAM
        elif number == 40:
            model.unknown_id = _identifier(value)
        elif number == 41:
            model.bos_id = _identifier(value)
        elif number == 42:
            model.eos_id = _identifier(value)


def _read_normalizer(model: SentencePieceModel, data: bytes) -> None:
    for number, value in _fields(data):
        if number == 2:
            model.characters = _bytes(value)
        elif number == 3:
            model.adds_space = bool(_number(value))
        elif number == 4:
            model.merges_spaces = bool(_number(value))


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message: number, and a number or bytes."""
    position = 0
    while position < len(data):
        key, position = _varint(data, position)
        number, kind = key >> 3, key & 7
        if kind == _VARINT:
            value, position = _varint(data, position)
            yield number, value
            continue
        if kind == _BYTES:
            length, position = _varint(data, position)
        elif kind in (_EIGHT_BYTES, _FOUR_BYTES):
            length = 8 if kind == _EIGHT_BYTES else 4
        else:
            raise ValueError(f"wire type {kind}")
        if position + length > len(data):
            raise ValueError("cut short")
        yield number, data[position : position + length]
        position += length


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, position
        shift += 7
        if shift > 63:
            raise ValueError("a number without end")


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ValueError("a number where bytes belong")
    return value


def _number(value: int | bytes) -> int:
    if isinstance(value, bytes):
        raise ValueError("bytes where a number belongs")
    return value


def _identifier(value: int | bytes) -> int | None:
    number = _number(value)
    # Minus one, as 64 bits, says that there is none.
    return number if number < 1 << 31 else None
