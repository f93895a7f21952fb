"""Rows of numbers in a kernel, in bfloat16 or float32: chosen by a flag, so that one compiled kernel serves both."""

from __future__ import annotations

from typing import Any

import numba

from octavo_kernels.cpu.memory import (
    load,
    load_bfloat16,
    load_first,
    load_first_bfloat16,
    store,
    store_bfloat16,
    store_first,
    store_first_bfloat16,
)


@numba.njit
def read(row: int, index: int, end: int, half: int) -> Any:
    """16 numbers of a row from `index` on; zeros from `end` on. `half`: bfloat16."""
    if half:
        address = row + 2 * index
        return load_bfloat16(address) if index + 16 <= end else load_first_bfloat16(address, end - index)
    address = row + 4 * index
    return load(address) if index + 16 <= end else load_first(address, end - index)


@numba.njit
def write(row: int, index: int, end: int, half: int, vector: Any) -> None:
    """Write 16 numbers of a row from `index` on, but none from `end` on."""
    if half:
        address = row + 2 * index
        if index + 16 <= end:
            store_bfloat16(address, vector)
        else:
            store_first_bfloat16(address, vector, end - index)
    else:
        address = row + 4 * index
        if index + 16 <= end:
            store(address, vector)
        else:
            store_first(address, vector, end - index)
