"""One tile of attention: 16 positions of one KV head against a block of query rows, in a thread's scratch memory.

Tiles begin at multiples of 16 of the absolute position and are taken in ascending order; every row goes through the
same operations whoever its neighbours are. Positions that do not exist are zeros, positions that a row must not see
have a weight of exactly 0. Scores and sums are float32; the softmax is computed online (Milakov and Gimelshein 2018).
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from octavo_kernels.cpu.arithmetic import add, div, exp, first_lanes, fma, largest, last_lanes, mul, splat, sub
from octavo_kernels.cpu.memory import load, put, scalar, store, transpose, transpose_bfloat16
from octavo_kernels.cpu.rows import read

TILE = 16
# Rows are computed four at a time, so that each key that is loaded serves four products.
ROWS = 4
# Finite, so that no infinity minus infinity arises; exp of it is 0.
HIDDEN = np.float32(-1e30)


@numba.njit
def load_keys(keys: int, present: int, stage: int, target: int, head_dim: int, half: int) -> None:
    """Write `present` keys at `keys` as a transposed tile, float32 [head_dim, 16], to `target`.

    The dimensions are rounded up to a multiple of 16; `stage` holds 256 float32.
    """
    size = 2 if half else 4
    for index in range(0, head_dim, 16):
        if present == TILE and index + 16 <= head_dim:
            if half:
                transpose_bfloat16(keys + size * index, size * head_dim, target + 64 * index)
            else:
                transpose(keys + size * index, size * head_dim, target + 64 * index)
        else:
            load_values(keys + size * index, present, stage, head_dim - index, head_dim, half)
            transpose(stage, 64, target + 64 * index)


@numba.njit
def load_values(values: int, present: int, target: int, width: int, head_dim: int, half: int) -> None:
    """Write the first 16 of `width` numbers of `present` rows as float32 [16, 16] to `target`; all others are zeros."""
    size = 2 if half else 4
    zero = splat(np.float32(0))
    for position in range(TILE):
        if position < present:
            store(target + 64 * position, read(values + size * head_dim * position, 0, min(width, 16), half))
        else:
            store(target + 64 * position, zero)


@numba.njit
def forget_values(values: int, past: int, width: int) -> None:
    """Zero the first `past` positions of a tile of values: nobody sees them, so they may hold anything."""
    zero = splat(np.float32(0))
    for index in range(0, width, 16):
        for position in range(min(past, TILE)):
            store(values + 64 * index + 64 * position, zero)


@numba.njit
def capped(scores: Any, cap: np.float32) -> Any:
    """Cap * tanh(scores / cap), where tanh(x) = 1 - 2 / (exp(2 x) + 1)."""
    one = splat(np.float32(1))
    grown = exp(mul(scores, splat(np.float32(2) / cap)))
    return mul(splat(cap), sub(one, div(splat(np.float32(2)), add(grown, one))))


@numba.njit
def weights(scores: Any, past: int, visible: int, maximum: int, norm: int, target: int) -> np.float32:
    """Turn a row's scores into weights at `target`; update its maximum and lanes of its norm. Gives the decay.

    The row sees the positions from `past` to before `visible`; both may lie outside the tile. A row that has seen
    nothing yet weighs what is hidden by exp(0); the first position that it sees decays that to 0.
    """
    scores = first_lanes(scores, visible, HIDDEN)
    if past > 0:
        scores = last_lanes(scores, past, HIDDEN)
    before = scalar(maximum)
    now = max(before, largest(scores))
    weight = exp(sub(scores, splat(now)))
    store(target, weight)
    if now == before:
        # The usual case behind the first tiles: exp(0) is 1.
        store(norm, add(load(norm), weight))
        return np.float32(1)
    put(maximum, now)
    decay = exp(splat(np.float32(before - now)))
    store(norm, fma(load(norm), decay, weight))
    return largest(decay)  # type: ignore[no-any-return]


@numba.njit
def tile_scores(query: int, keys: int, head_dim: int, stride: int) -> tuple[Any, Any, Any, Any]:
    """The scores of four query rows, `stride` bytes apart, against a transposed tile of keys."""
    a = splat(np.float32(0))
    b, c, d = a, a, a
    # Even and odd dimensions apart: eight sums in flight hide what one takes.
    odd_a, odd_b, odd_c, odd_d = a, a, a, a
    for index in range(0, head_dim, 2):
        even, odd = load(keys + 64 * index), load(keys + 64 * index + 64)
        place = query + 4 * index
        a = fma(splat(scalar(place)), even, a)
        b = fma(splat(scalar(place + stride)), even, b)
        c = fma(splat(scalar(place + 2 * stride)), even, c)
        d = fma(splat(scalar(place + 3 * stride)), even, d)
        place += 4
        odd_a = fma(splat(scalar(place)), odd, odd_a)
        odd_b = fma(splat(scalar(place + stride)), odd, odd_b)
        odd_c = fma(splat(scalar(place + 2 * stride)), odd, odd_c)
        odd_d = fma(splat(scalar(place + 3 * stride)), odd, odd_d)
    return add(a, odd_a), add(b, odd_b), add(c, odd_c), add(d, odd_d)


@numba.njit
def add_values(sums: int, stride: int, weight: int, values: int, width: int, decays: tuple[Any, Any, Any, Any]) -> None:
    """Decay the sums of four rows, `stride` bytes apart, and add the tile's values by their weights.

    `values` holds a float32 [16, 16] block for each 16 of the `width` dimensions.
    """
    for index in range(0, width, 16):
        place = sums + 4 * index
        a = mul(load(place), splat(decays[0]))
        b = mul(load(place + stride), splat(decays[1]))
        c = mul(load(place + 2 * stride), splat(decays[2]))
        d = mul(load(place + 3 * stride), splat(decays[3]))
        block = values + 64 * index
        odd_a = splat(np.float32(0))
        odd_b, odd_c, odd_d = odd_a, odd_a, odd_a
        for position in range(0, TILE, 2):
            even, odd = load(block + 64 * position), load(block + 64 * position + 64)
            lane = weight + 4 * position
            a = fma(splat(scalar(lane)), even, a)
            b = fma(splat(scalar(lane + 64)), even, b)
            c = fma(splat(scalar(lane + 128)), even, c)
            d = fma(splat(scalar(lane + 192)), even, d)
            lane += 4
            odd_a = fma(splat(scalar(lane)), odd, odd_a)
            odd_b = fma(splat(scalar(lane + 64)), odd, odd_b)
            odd_c = fma(splat(scalar(lane + 128)), odd, odd_c)
            odd_d = fma(splat(scalar(lane + 192)), odd, odd_d)
        store(place, add(a, odd_a))
        store(place + stride, add(b, odd_b))
        store(place + 2 * stride, add(c, odd_c))
        store(place + 3 * stride, add(d, odd_d))
