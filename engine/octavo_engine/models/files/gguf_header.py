"""Reads the header of a GGUF file: metadata and where each tensor lies. Trusts nothing; loads no torch.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, versions 2 and 3. Memory and time are bounded by the
size of the file, and every defect becomes a ModelLoadError.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO

import numpy as np

from octavo_engine.errors import ModelLoadError
from octavo_engine.models.files.byte_cursor import ByteCursor
from octavo_engine.models.files.stored import TensorInfo
from octavo_engine.models.files.tensor_type import IN_GGUF, TensorType

MAGIC = b"GGUF"
VERSIONS = (2, 3)
MAX_DIMENSIONS = 4
MAX_NAME_BYTES = 65_535
# A chat template is the longest text that models carry: some 20 kB. Vocabularies stay under a million entries.
MAX_TEXT_BYTES = 64 << 20
MAX_STRINGS = 1 << 23
MAX_NESTED_ARRAYS = 1 << 12
# The least that an entry can occupy: key length and type; or name length, dimensions, one dimension, type and offset.
MIN_METADATA_BYTES = 8 + 4 + 1
MIN_TENSOR_BYTES = 8 + 4 + 4 + 8

_BOOL, _STRING, _ARRAY = 7, 8, 9
_NUMBERS = {
    number: np.dtype(name)
    for number, name in enumerate(("<u1", "<i1", "<u2", "<i2", "<u4", "<i4", "<f4", "?", "", "", "<u8", "<i8", "<f8"))
    if name
}
_DAMAGED = "The model file is damaged: {}. Download it again."


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """Everything but the weights.

    Attributes:
        metadata: texts, numbers, booleans; arrays of texts as tuples, arrays of numbers as read-only numpy arrays.
        tensors: by name; every one lies within the file.
        file_bytes: size of the file.
        path: where it lies, or None when it was read from a binary file.
    """

    version: int
    metadata: Mapping[str, Any]
    tensors: Mapping[str, TensorInfo]
    file_bytes: int
    path: Path | None


def read_header(source: str | os.PathLike[str] | BinaryIO) -> GgufHeader:
    """Read and check the header of a GGUF file.

    Args:
        source: a path, or a seekable binary file; of that only the header is read.

    Raises:
        ModelLoadError: missing, not a GGUF file, of another version, cut short, or damaged.
    """
    with ByteCursor(source) as cursor:
        version = _version(cursor)
        tensor_count = _count(cursor, "tensors", MIN_TENSOR_BYTES)
        metadata_count = _count(cursor, "metadata entries", MIN_METADATA_BYTES)
        metadata: dict[str, Any] = {}
        for _ in range(metadata_count):
            key = cursor.string(MAX_NAME_BYTES)
            if key in metadata:
                raise ModelLoadError(_DAMAGED.format(f"it states {key!r} twice"))
            metadata[key] = _value(cursor, cursor.u32())
        tensors = _tensors(cursor, tensor_count, _alignment(metadata))
        path = Path(source) if isinstance(source, str | os.PathLike) else None
        return GgufHeader(version, MappingProxyType(metadata), MappingProxyType(tensors), cursor.size, path)


def _version(cursor: ByteCursor) -> int:
    magic = cursor.take(min(4, cursor.size))
    if magic != MAGIC:
        raise ModelLoadError(_not_gguf(magic + cursor.take(min(508, cursor.remaining))))
    version = cursor.u32()
    if version in VERSIONS:
        return version
    if version.to_bytes(4, "little") in {known.to_bytes(4, "big") for known in VERSIONS}:
        raise ModelLoadError("The model file is in big-endian byte order. Get the little-endian file of this model.")
    if version < min(VERSIONS):
        raise ModelLoadError(f"The model file has the outdated GGUF version {version}. Get a newer file of this model.")
    raise ModelLoadError(
        f"The model file has GGUF version {version}; this Octavo reads up to {max(VERSIONS)}. Update Octavo, or get "
        f"a file of version {max(VERSIONS)}."
    )


def _not_gguf(start: bytes) -> str:
    if not start:
        return "The model file is empty. Download it again."
    if start.startswith(b"version https://git-lfs"):
        return "This is a Git LFS pointer, not the model file itself. Download the file that it points to."
    if start.lstrip()[:1] == b"<":
        return "This is a web page, not a GGUF model file. Perhaps the download needed a login; download it again."
    if not start.strip(b"\0"):
        return "The model file begins with zeros, as an unfinished download does. Download it again."
    if b"\0" not in start and start.isascii():
        return "This is a text file, not a GGUF model file. Choose a file that was downloaded as a GGUF model."
    return "This is not a GGUF model file. Choose a file that was downloaded as a GGUF model."


def _count(cursor: ByteCursor, what: str, minimum: int) -> int:
    """A number of entries, each of at least `minimum` bytes."""
    count = cursor.u64()
    if count * minimum > cursor.remaining:
        raise ModelLoadError(
            _DAMAGED.format(f"it announces {count:,} {what} in {cursor.remaining:,} bytes"),
            needed=count * minimum,
            available=cursor.remaining,
        )
    return count


def _value(cursor: ByteCursor, kind: int) -> Any:
    if kind == _STRING:
        return cursor.string(MAX_TEXT_BYTES)
    if kind == _ARRAY:
        return _array(cursor, nested=False)
    dtype = _number(kind)
    return np.frombuffer(cursor.take(dtype.itemsize), dtype)[0].item()


def _array(cursor: ByteCursor, *, nested: bool) -> Any:
    kind = cursor.u32()
    if kind == _STRING:
        count = _limited(_count(cursor, "texts", 8), MAX_STRINGS)
        return cursor.strings(count)
    if kind == _ARRAY:
        if nested:
            raise ModelLoadError(_DAMAGED.format("its metadata holds arrays within arrays within arrays"))
        count = _limited(_count(cursor, "arrays", 12), MAX_NESTED_ARRAYS)
        return tuple(_array(cursor, nested=True) for _ in range(count))
    dtype = _number(kind)
    count = _count(cursor, "numbers", dtype.itemsize)
    return np.frombuffer(cursor.take(count * dtype.itemsize), dtype)


def _limited(count: int, limit: int) -> int:
    if count > limit:
        raise ModelLoadError(_DAMAGED.format(f"an array has {count:,} entries"), needed=count, available=limit)
    return count


def _number(kind: int) -> np.dtype[Any]:
    dtype = _NUMBERS.get(kind)
    if dtype is None:
        raise ModelLoadError(_DAMAGED.format(f"its metadata holds a value of the unknown kind {kind}"))
    return dtype


def _alignment(metadata: Mapping[str, Any]) -> int:
    alignment = metadata.get("general.alignment", 32)
    if not isinstance(alignment, int) or not 8 <= alignment <= 1 << 20 or alignment & (alignment - 1):
        raise ModelLoadError(_DAMAGED.format(f"its alignment is {alignment!r}"))
    return alignment


def _tensors(cursor: ByteCursor, count: int, alignment: int) -> dict[str, TensorInfo]:
    entries: dict[str, tuple[tuple[int, ...], TensorType, int]] = {}
    for _ in range(count):
        name = cursor.string(MAX_NAME_BYTES)
        if name in entries:
            raise ModelLoadError(_DAMAGED.format(f"it holds the tensor {name!r} twice"))
        entries[name] = _entry(cursor, name)
    data = -(-cursor.position // alignment) * alignment
    return {name: _placed(name, entry, data, alignment, cursor.size) for name, entry in entries.items()}


def _entry(cursor: ByteCursor, name: str) -> tuple[tuple[int, ...], TensorType, int]:
    dimensions = cursor.u32()
    if dimensions > MAX_DIMENSIONS:
        raise ModelLoadError(_DAMAGED.format(f"the tensor {name!r} has {dimensions} dimensions"))
    # The file has the fastest dimension first.
    shape = tuple(cursor.u64() for _ in range(dimensions))[::-1]
    number = cursor.u32()
    if number not in IN_GGUF:
        raise ModelLoadError(
            f"The tensor {name!r} is stored in a format (number {number}) that this Octavo does not know. "
            "Update Octavo, or get the model in another format, such as Q4_1 or Q8_0."
        )
    return shape, TensorType(number), cursor.u64()


def _placed(
    name: str, entry: tuple[tuple[int, ...], TensorType, int], data: int, alignment: int, file_bytes: int
) -> TensorInfo:
    shape, kind, offset = entry
    values = math.prod(shape)
    if values == 0 or (shape and shape[-1] % kind.block_length):
        raise ModelLoadError(_DAMAGED.format(f"the {kind.name} tensor {name!r} has the shape {shape}"))
    if offset % alignment:
        raise ModelLoadError(_DAMAGED.format(f"the tensor {name!r} begins at the odd place {offset}"))
    nbytes = values // kind.block_length * kind.block_bytes
    end = data + offset + nbytes
    if end > file_bytes:
        raise ModelLoadError(
            f"The model file is cut short: {name!r} ends at byte {end:,} and the file has {file_bytes:,}. "
            "Download it again.",
            needed=end,
            available=file_bytes,
        )
    return TensorInfo(shape, kind, data + offset, nbytes)
