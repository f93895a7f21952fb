"""`group_product` on a processor: every thread takes some outputs and reads their integers once for all rows.

A row is summed in one order, whoever its neighbours are: even and odd vectors apart, then the offsets.
"""

from __future__ import annotations

import numba
import numpy as np
import torch

from octavo_kernels.cpu.arithmetic import add, fma, splat, total
from octavo_kernels.cpu.device import declines
from octavo_kernels.cpu.group_rows import RUN, scaled_run
from octavo_kernels.cpu.memory import load, put, put_bfloat16, store
from octavo_kernels.cpu.native_kernel import NativeKernel, operand, own_rows, thread_number
from octavo_kernels.cpu.rows import read
from octavo_kernels.cpu.widen_groups import check_groups

__all__ = ["declines", "group_product"]

# Rows, or outputs of a single row, that are computed together: their sums are in flight at once.
ROWS = 4
# Outputs whose integers stay in a near cache while all rows pass.
BLOCK = 8
# Rows of a call of the kernel: their numbers and their sums by group must stay in a near cache, too.
MOST_ROWS = 32


@numba.njit
def _prepare(x: int, rows: int, columns: int, each: int, half: int, with_sums: int, scratch: int, width: int) -> None:
    """Write the rows as float32 to scratch, and behind each the sums of its groups."""
    zero = splat(np.float32(0))
    group = RUN // each
    groups = columns // RUN * each
    for row in range(rows):
        source = x + row * columns * (2 if half else 4)
        target = scratch + 4 * row * width
        for index in range(0, columns, 16):
            store(target + 4 * index, read(source, index, columns, half))
        if with_sums:
            sums = target + 4 * columns
            # Whole vectors are read there.
            for index in range(0, groups, 16):
                store(sums + 4 * index, zero)
            for number in range(groups):
                lanes = zero
                for index in range(number * group, (number + 1) * group, 16):
                    lanes = add(lanes, load(target + 4 * index))
                put(sums + 4 * number, total(lanes))


@numba.njit
def _offset(offsets: int, sums: int, groups: int) -> np.float32:
    """What the offsets of an output add to a row."""
    lanes = splat(np.float32(0))
    if offsets == 0:
        return np.float32(0)
    for index in range(0, groups, 16):
        lanes = fma(read(offsets, index, groups, 1), load(sums + 4 * index), lanes)
    return total(lanes)  # type: ignore[no-any-return]


@numba.njit
def _outputs(
    packed: int, row_bytes: int, scales: int, scale_bytes: int, each: int, four: int, x: int, runs: int
) -> tuple[np.float32, np.float32, np.float32, np.float32]:
    """Four outputs of one row."""
    even_a = splat(np.float32(0))
    even_b, even_c, even_d = even_a, even_a, even_a
    odd_a, odd_b, odd_c, odd_d = even_a, even_a, even_a, even_a
    for run in range(runs):
        even, odd = load(x + 128 * run), load(x + 128 * run + 64)
        first, second = scaled_run(packed, run, scales, each, four)
        even_a, odd_a = fma(first, even, even_a), fma(second, odd, odd_a)
        first, second = scaled_run(packed + row_bytes, run, scales + scale_bytes, each, four)
        even_b, odd_b = fma(first, even, even_b), fma(second, odd, odd_b)
        first, second = scaled_run(packed + 2 * row_bytes, run, scales + 2 * scale_bytes, each, four)
        even_c, odd_c = fma(first, even, even_c), fma(second, odd, odd_c)
        first, second = scaled_run(packed + 3 * row_bytes, run, scales + 3 * scale_bytes, each, four)
        even_d, odd_d = fma(first, even, even_d), fma(second, odd, odd_d)
    return (
        total(add(even_a, odd_a)),
        total(add(even_b, odd_b)),
        total(add(even_c, odd_c)),
        total(add(even_d, odd_d)),
    )


@numba.njit
def _rows(
    packed: int, scales: int, each: int, four: int, x: int, stride: int, runs: int
) -> tuple[np.float32, np.float32, np.float32, np.float32]:
    """One output of four rows, `stride` bytes apart."""
    even_a = splat(np.float32(0))
    even_b, even_c, even_d = even_a, even_a, even_a
    odd_a, odd_b, odd_c, odd_d = even_a, even_a, even_a, even_a
    for run in range(runs):
        first, second = scaled_run(packed, run, scales, each, four)
        place = x + 128 * run
        even_a = fma(first, load(place), even_a)
        odd_a = fma(second, load(place + 64), odd_a)
        place += stride
        even_b = fma(first, load(place), even_b)
        odd_b = fma(second, load(place + 64), odd_b)
        place += stride
        even_c = fma(first, load(place), even_c)
        odd_c = fma(second, load(place + 64), odd_c)
        place += stride
        even_d = fma(first, load(place), even_d)
        odd_d = fma(second, load(place + 64), odd_d)
    return (
        total(add(even_a, odd_a)),
        total(add(even_b, odd_b)),
        total(add(even_c, odd_c)),
        total(add(even_d, odd_d)),
    )


@numba.njit
def _give(out: int, place: int, half: int, value: np.float32) -> None:
    if half:
        put_bfloat16(out + 2 * place, value)
    else:
        put(out + 4 * place, value)


@numba.njit
def _outputs_of_row(arguments: int, scratch: int, first: int, count: int) -> None:
    """`count` outputs, at most four, of the only row."""
    columns = operand(arguments, 7)
    each = operand(arguments, 8)
    four = operand(arguments, 9)
    offsets = operand(arguments, 3)
    groups = columns // RUN * each
    row_bytes = columns // 2 if four else columns
    packed = operand(arguments, 1) + first * row_bytes
    scales = operand(arguments, 2) + 2 * first * groups
    # Where there are fewer outputs, the same one is computed again.
    step = 1 if count == ROWS else 0
    sums = _outputs(packed, step * row_bytes, scales, step * 2 * groups, each, four, scratch, columns // RUN)
    if count == ROWS:
        for index in range(ROWS):
            own = 0 if offsets == 0 else offsets + 2 * (first + index) * groups
            value = sums[index] + _offset(own, scratch + 4 * columns, groups)
            _give(operand(arguments, 4), first + index, operand(arguments, 10), value)
    else:
        own = 0 if offsets == 0 else offsets + 2 * first * groups
        value = sums[0] + _offset(own, scratch + 4 * columns, groups)
        _give(operand(arguments, 4), first, operand(arguments, 10), value)
        if count > 1:
            _outputs_of_row(arguments, scratch, first + 1, count - 1)


@numba.njit
def _rows_of_output(arguments: int, scratch: int, first: int, output: int) -> None:
    """One output of the four rows from `first` on, or of as many as there are."""
    columns = operand(arguments, 7)
    each = operand(arguments, 8)
    four = operand(arguments, 9)
    width = operand(arguments, 12)
    offsets = operand(arguments, 3)
    groups = columns // RUN * each
    packed = operand(arguments, 1) + output * (columns // 2 if four else columns)
    scales = operand(arguments, 2) + 2 * output * groups
    own = 0 if offsets == 0 else offsets + 2 * output * groups
    here = scratch + 4 * first * width
    sums = _rows(packed, scales, each, four, here, 4 * width, columns // RUN)
    for index in range(ROWS):
        # Behind the last row lies scratch memory, whose sums nobody asked for.
        if first + index < operand(arguments, 5):
            value = sums[index] + _offset(own, here + 4 * index * width + 4 * columns, groups)
            place = (first + index) * operand(arguments, 6) + output
            _give(operand(arguments, 4), place, operand(arguments, 10), value)


def _group_product(arguments: int) -> None:
    rows = operand(arguments, 5)
    columns = operand(arguments, 7)
    width = operand(arguments, 12)
    scratch = operand(arguments, 11) + 4 * thread_number(arguments) * width * MOST_ROWS
    with_sums = 1 if operand(arguments, 3) != 0 else 0
    start, stop = own_rows(arguments, operand(arguments, 6))
    _prepare(
        operand(arguments, 0), rows, columns, operand(arguments, 8), operand(arguments, 10), with_sums, scratch, width
    )
    for block in range(start, stop, BLOCK):
        end = min(block + BLOCK, stop)
        if rows == 1:
            for output in range(block, end, ROWS):
                # The last outputs of a thread may be computed with those before them once more.
                first = max(start, min(output, stop - ROWS))
                _outputs_of_row(arguments, scratch, first, min(ROWS, stop - first))
        else:
            for first in range(0, rows, ROWS):
                for output in range(block, end):
                    _rows_of_output(arguments, scratch, first, output)


_KERNEL = NativeKernel(_group_product)
_SCRATCH: dict[int, torch.Tensor] = {}


def group_product(
    x: torch.Tensor, integers: torch.Tensor, *, scales: torch.Tensor, offsets: torch.Tensor | None, out: torch.Tensor
) -> None:
    """See `octavo_kernels.operations.group_product`."""
    tokens, columns = x.shape
    outputs = len(integers)
    check_groups(integers, scales, offsets, columns)
    assert x.dtype == out.dtype, "x and out have one dtype"
    assert x.is_contiguous(), "rows are dense"
    assert out.is_contiguous(), "rows are dense"
    assert out.shape == (tokens, outputs), "out has a number for each row and output"
    size = x.element_size()
    # Numbers of a row and sums of its groups, each in whole vectors.
    width = columns + -(-scales.shape[1] // 16) * 16
    scratch = _scratch(width)
    for start in range(0, tokens, MOST_ROWS):
        rows = min(MOST_ROWS, tokens - start)
        _KERNEL(
            rows * outputs * columns // 16,
            x.data_ptr() + start * columns * size,
            integers.data_ptr(),
            scales.data_ptr(),
            0 if offsets is None else offsets.data_ptr(),
            out.data_ptr() + start * outputs * size,
            rows,
            outputs,
            columns,
            scales.shape[1] * RUN // columns,
            int(integers.dtype == torch.uint8),
            int(x.dtype == torch.bfloat16),
            scratch.data_ptr(),
            width,
        )


def _scratch(width: int) -> torch.Tensor:
    """Scratch memory, float32 [threads, rows, width], for one caller at a time; the widest so far."""
    needed = torch.get_num_threads() * MOST_ROWS * width
    scratch = _SCRATCH.get(0)
    if scratch is None or scratch.numel() < needed:
        scratch = _SCRATCH[0] = torch.empty(needed)
    return scratch
