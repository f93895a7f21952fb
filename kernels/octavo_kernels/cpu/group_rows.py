"""Reads 32 integers of a packed row in a kernel: eight bits each, or four."""

from __future__ import annotations

from typing import Any

import numba

from octavo_kernels.cpu.arithmetic import mul, splat
from octavo_kernels.cpu.memory import load_high_nibbles, load_int8, load_low_nibbles, scalar_bfloat16

RUN = 32


@numba.njit
def scaled_run(row: int, run: int, scales: int, each: int, four: int) -> tuple[Any, Any]:
    """The integers of run number `run`, times their scales, of which a run has `each`: two vectors."""
    place = scales + 2 * run * each
    first = splat(scalar_bfloat16(place))
    second = splat(scalar_bfloat16(place + 2)) if each == 2 else first
    if four:
        return mul(load_low_nibbles(row + 16 * run), first), mul(load_high_nibbles(row + 16 * run), second)
    return mul(load_int8(row + RUN * run), first), mul(load_int8(row + RUN * run + 16), second)
