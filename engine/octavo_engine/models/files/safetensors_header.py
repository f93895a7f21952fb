"""Reads the header of a safetensors file: which tensors lie where. Trusts nothing; loads no torch.

Format: https://github.com/huggingface/safetensors#format. A length of 8 bytes, JSON of that length, then the data.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from octavo_engine.errors import ModelLoadError
from octavo_engine.models.files.byte_cursor import ByteCursor
from octavo_engine.models.files.stored import TensorInfo
from octavo_engine.models.files.tensor_type import TensorType

# As the format's own reader has it.
MAX_HEADER_BYTES = 100_000_000
MAX_DIMENSIONS = 8

_TYPES = {
    "F64": TensorType.F64,
    "F32": TensorType.F32,
    "F16": TensorType.F16,
    "BF16": TensorType.BF16,
    "F8_E4M3": TensorType.F8_E4M3,
    "I64": TensorType.I64,
    "I32": TensorType.I32,
    "I16": TensorType.I16,
    "I8": TensorType.I8,
    "U8": TensorType.U8,
}


def read_safetensors(path: Path, file: int) -> dict[str, TensorInfo]:
    """Where each tensor of a file lies; tensors of kinds that no language model uses are left out.

    Args:
        path: the file.
        file: its number among those of the model.

    Raises:
        ModelLoadError: missing, cut short, or damaged.
    """
    with ByteCursor(path) as cursor:
        if cursor.size < 8:
            raise _damaged(path, f"it has {cursor.size} bytes")
        length = cursor.u64()
        if length > min(MAX_HEADER_BYTES, cursor.remaining):
            raise _damaged(path, f"it announces a header of {length:,} bytes in {cursor.size:,}", length, cursor.size)
        try:
            header = json.loads(cursor.take(length))
        except (ValueError, RecursionError) as fault:
            raise _damaged(path, "its header is no JSON") from fault
        if not isinstance(header, dict):
            raise _damaged(path, "its header is no list of tensors")
        return _tensors(path, header, cursor.position, cursor.size, file)


def _tensors(path: Path, header: Mapping[str, Any], data: int, size: int, file: int) -> dict[str, TensorInfo]:
    tensors: dict[str, TensorInfo] = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        try:
            kind, shape, (start, stop) = entry["dtype"], tuple(entry["shape"]), entry["data_offsets"]
        except (KeyError, TypeError, ValueError) as fault:
            raise _damaged(path, f"the entry of {name!r} is incomplete") from fault
        numbers = (*shape, start, stop)
        if len(shape) > MAX_DIMENSIONS or not all(type(number) is int and number >= 0 for number in numbers):
            raise _damaged(path, f"the place of {name!r} is {start}–{stop}, its shape {shape}")
        if kind not in _TYPES:
            continue
        nbytes = math.prod(shape) * _TYPES[kind].block_bytes
        if stop - start != nbytes:
            raise _damaged(path, f"{name!r} has {stop - start:,} bytes instead of {nbytes:,}")
        if data + stop > size:
            raise ModelLoadError(
                f"{path.name} is cut short: {name!r} ends at byte {data + stop:,} and the file has {size:,}. "
                "Download it again.",
                needed=data + stop,
                available=size,
            )
        tensors[name] = TensorInfo(shape, _TYPES[kind], data + start, nbytes, file)
    return tensors


def _damaged(path: Path, what: str, needed: int | None = None, available: int | None = None) -> ModelLoadError:
    return ModelLoadError(f"{path.name} is damaged: {what}. Download it again.", needed=needed, available=available)
