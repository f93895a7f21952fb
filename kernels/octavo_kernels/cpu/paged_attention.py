"""`paged_attention` on a processor: tasks of a sequence, a KV head and a block of queries, shared by the threads."""

from __future__ import annotations

import sys

import numba
import numpy as np
import torch

from octavo_kernels.cpu.arithmetic import div, mul, splat, total
from octavo_kernels.cpu.attention_tile import (
    HIDDEN,
    ROWS,
    TILE,
    add_values,
    capped,
    forget_values,
    load_keys,
    load_values,
    tile_scores,
    weights,
)
from octavo_kernels.cpu.device import declines
from octavo_kernels.cpu.memory import integer, load, put, store
from octavo_kernels.cpu.native_kernel import (
    NativeKernel,
    float_bits,
    float_operand,
    next_task,
    operand,
    thread_number,
)
from octavo_kernels.cpu.rows import read, write

__all__ = ["declines", "paged_attention"]

# Query rows of a task: enough to share the preparation of a tile, few enough for the nearest cache.
BLOCK_ROWS = 32


@numba.njit
def _begin(query: int, row_bytes: int, head_bytes: int, rows: int, group: int, arguments: int, scratch: int) -> None:
    """Write the scaled query rows to scratch; rows of a group are the heads of one token. Zero the sums."""
    head_dim = operand(arguments, 9)
    half = operand(arguments, 11)
    scale = splat(np.float32(float_operand(arguments, 12)))
    zero = splat(np.float32(0))
    width = (head_dim + 15) // 16 * 16
    padded = (rows + ROWS - 1) // ROWS * ROWS
    sums = scratch + 4 * padded * width
    norms = sums + 4 * padded * width
    maxima = norms + 64 * padded
    for row in range(padded):
        source = query + row // group * row_bytes + row % group * head_bytes
        for index in range(0, width, 16):
            place = 4 * (row * width + index)
            store(sums + place, zero)
            if row < rows:
                store(scratch + place, mul(read(source, index, head_dim, half), scale))
            else:
                store(scratch + place, zero)
        store(norms + 64 * row, zero)
        put(maxima + 4 * row, HIDDEN)


@numba.njit
def _fetch(arguments: int, table: int, head: int, start: int, present: int, keys: int, values: int, stage: int) -> None:
    """Bring the keys and values of a tile from the pages into scratch; the tile may cross pages."""
    cache = operand(arguments, 1)
    pages = operand(arguments, 2)
    kv_heads = operand(arguments, 7)
    page_size = operand(arguments, 8)
    head_dim = operand(arguments, 9)
    half = operand(arguments, 11)
    row_bytes = head_dim * (2 if half else 4)
    to_values = pages * kv_heads * page_size * row_bytes
    if start % page_size + present <= page_size:
        page = np.int64(integer(table + 4 * (start // page_size)))
        source = cache + ((page * kv_heads + head) * page_size + start % page_size) * row_bytes
    else:
        # Rare: pages that are no multiple of a tile. The rows are first put together behind the stage.
        source = stage + 1024
        to_values_here = TILE * row_bytes
        for offset in range(present):
            position = start + offset
            page = np.int64(integer(table + 4 * (position // page_size)))
            row = cache + ((page * kv_heads + head) * page_size + position % page_size) * row_bytes
            for index in range(0, head_dim, 16):
                place = source + offset * row_bytes
                write(place, index, head_dim, half, read(row, index, head_dim, half))
                write(place + to_values_here, index, head_dim, half, read(row + to_values, index, head_dim, half))
        to_values = to_values_here
    load_keys(source, present, stage, keys, head_dim, half)
    for index in range(0, head_dim, 16):
        shift = index * (2 if half else 4)
        load_values(source + to_values + shift, present, values + 64 * index, head_dim - index, head_dim, half)


@numba.njit
def _attend(arguments: int, table: int, head: int, first: int, rows: int, group: int, scratch: int) -> None:
    """Take the block's rows through all tiles that its last row sees; `first` is the position of its first row."""
    head_dim = operand(arguments, 9)
    width = (head_dim + 15) // 16 * 16
    padded = (rows + ROWS - 1) // ROWS * ROWS
    sums = scratch + 4 * padded * width
    norms = sums + 4 * padded * width
    maxima = norms + 64 * padded
    weight = maxima + 4 * padded
    keys = weight + 64 * ROWS
    values = keys + 64 * width
    stage = values + 64 * width
    last = first + (rows - 1) // group
    # Without a window, one that reaches beyond the beginning.
    window = operand(arguments, 10)
    if window == 0:
        window = last + 1
    cap = np.float32(float_operand(arguments, 19))
    lowest = max(0, first - window + 1)
    for start in range(lowest // TILE * TILE, last + 1, TILE):
        _fetch(arguments, table, head, start, min(TILE, last + 1 - start), keys, values, stage)
        if start < lowest:
            forget_values(values, lowest - start, width)
        for row in range(0, padded, ROWS):
            # The last of the four rows sees furthest ahead, the first furthest back; what they do not see, none does.
            if first + (row + ROWS - 1) // group < start or first + row // group - window >= start + TILE - 1:
                continue
            a, b, c, d = tile_scores(scratch + 4 * row * width, keys, head_dim, 4 * width)
            if cap > 0:
                a, b, c, d = capped(a, cap), capped(b, cap), capped(c, cap), capped(d, cap)
            seen = first - start + 1
            past = seen - window
            norm = norms + 64 * row
            maximum = maxima + 4 * row
            ahead = row // group
            decay_a = weights(a, past + ahead, seen + ahead, maximum, norm, weight)
            ahead = (row + 1) // group
            decay_b = weights(b, past + ahead, seen + ahead, maximum + 4, norm + 64, weight + 64)
            ahead = (row + 2) // group
            decay_c = weights(c, past + ahead, seen + ahead, maximum + 8, norm + 128, weight + 128)
            ahead = (row + 3) // group
            decay_d = weights(d, past + ahead, seen + ahead, maximum + 12, norm + 192, weight + 192)
            decays = (decay_a, decay_b, decay_c, decay_d)
            add_values(sums + 4 * row * width, 4 * width, weight, values, width, decays)


@numba.njit
def _finish(out: int, row_bytes: int, head_bytes: int, rows: int, group: int, arguments: int, scratch: int) -> None:
    """Divide the sums by their norms and write them out."""
    head_dim = operand(arguments, 9)
    half = operand(arguments, 11)
    width = (head_dim + 15) // 16 * 16
    padded = (rows + ROWS - 1) // ROWS * ROWS
    sums = scratch + 4 * padded * width
    norms = sums + 4 * padded * width
    for row in range(rows):
        target = out + row // group * row_bytes + row % group * head_bytes
        norm = splat(total(load(norms + 64 * row)))
        for index in range(0, head_dim, 16):
            write(target, index, head_dim, half, div(load(sums + 4 * (row * width + index)), norm))


def _paged_attention(arguments: int) -> None:
    page_table = operand(arguments, 3)
    query_starts = operand(arguments, 4)
    context_lengths = operand(arguments, 5)
    heads = operand(arguments, 6)
    kv_heads = operand(arguments, 7)
    head_bytes = operand(arguments, 9) * (2 if operand(arguments, 11) else 4)
    sequences = operand(arguments, 13)
    table_bytes = operand(arguments, 14)
    q_bytes = operand(arguments, 15)
    scratch = operand(arguments, 17) + thread_number(arguments) * operand(arguments, 18)
    group = heads // kv_heads
    block = max(1, BLOCK_ROWS // group)
    task = next_task(arguments)
    number = 0
    for sequence in range(sequences):
        start = np.int64(integer(query_starts + 4 * sequence))
        queries = np.int64(integer(query_starts + 4 * sequence + 4)) - start
        context = np.int64(integer(context_lengths + 4 * sequence))
        table = page_table + table_bytes * sequence
        # The last blocks see most: they come first, so that no thread is left alone with a long one.
        for index in range((queries + block - 1) // block):
            offset = max(0, queries - (index + 1) * block)
            rows = (queries - index * block - offset) * group
            for head in range(kv_heads):
                if number == task:
                    first_head = head * group * head_bytes
                    query = operand(arguments, 0) + (start + offset) * q_bytes + first_head
                    out = operand(arguments, 16) + (start + offset) * heads * head_bytes + first_head
                    _begin(query, q_bytes, head_bytes, rows, group, arguments, scratch)
                    _attend(arguments, table, head, context - queries + offset, rows, group, scratch)
                    _finish(out, heads * head_bytes, head_bytes, rows, group, arguments, scratch)
                    task = next_task(arguments)
                number += 1


_KERNEL = NativeKernel(_paged_attention)


def paged_attention(
    q: torch.Tensor,
    kv_layer: torch.Tensor,
    *,
    page_table: torch.Tensor,
    query_starts: torch.Tensor,
    context_lengths: torch.Tensor,
    scale: float,
    out: torch.Tensor,
    window: int,
    softcap: float,
) -> None:
    """See `octavo_kernels.operations.paged_attention`."""
    tokens, heads, head_dim = q.shape
    _, pages, kv_heads, page_size, _ = kv_layer.shape
    sequences = len(context_lengths)
    size = q.element_size()
    assert kv_layer.shape == (2, pages, kv_heads, page_size, head_dim), "the pages hold heads of this size"
    assert heads % kv_heads == 0, "each KV head serves the same number of query heads"
    assert head_dim % 8 == 0, "head_dim is a multiple of 8"
    assert q.dtype == kv_layer.dtype == out.dtype, "q, pages and out have one dtype"
    assert q.stride()[1:] == (head_dim, 1), "heads and dimensions are dense"
    assert kv_layer.is_contiguous(), "pages are dense"
    assert out.is_contiguous(), "out is dense"
    assert page_table.is_contiguous(), "the page table is dense"
    assert page_table.dtype == query_starts.dtype == context_lengths.dtype == torch.int32, "tables are int32"
    assert len(query_starts) == sequences + 1, "each sequence has a first row and a last one"
    scratch = _scratch(heads // kv_heads, head_dim)
    _KERNEL(
        tokens * heads * min(page_table.shape[1] * page_size, window or sys.maxsize) * head_dim // 64,
        q.data_ptr(),
        kv_layer.data_ptr(),
        pages,
        page_table.data_ptr(),
        query_starts.data_ptr(),
        context_lengths.data_ptr(),
        heads,
        kv_heads,
        page_size,
        head_dim,
        window,
        int(q.dtype == torch.bfloat16),
        float_bits(scale),
        sequences,
        page_table.stride(0) * 4,
        q.stride(0) * size,
        out.data_ptr(),
        scratch.data_ptr(),
        scratch.stride(0) * 4,
        float_bits(softcap),
    )


_SCRATCH: dict[tuple[int, int, int], torch.Tensor] = {}


def _scratch(group: int, head_dim: int) -> torch.Tensor:
    """Scratch memory, float32 [threads, numbers], for one caller at a time."""
    threads = torch.get_num_threads()
    scratch = _SCRATCH.get((threads, group, head_dim))
    if scratch is None:
        width = -(-head_dim // 16) * 16
        rows = -(-max(BLOCK_ROWS, group) // ROWS) * ROWS
        block = rows * (2 * width + TILE + 1)
        tile = 2 * TILE * width + TILE * ROWS + TILE * TILE + 2 * TILE * width
        scratch = _SCRATCH[threads, group, head_dim] = torch.empty(threads, -(-(block + tile) // 16) * 16)
    return scratch
