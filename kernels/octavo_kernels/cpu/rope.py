"""`rope` on a processor."""

from __future__ import annotations

import numba
import numpy as np
import torch

from octavo_kernels.cpu.device import declines
from octavo_kernels.cpu.memory import integer, put, put_bfloat16, scalar, scalar_bfloat16
from octavo_kernels.cpu.native_kernel import NativeKernel, operand, own_rows

__all__ = ["declines", "rope"]


@numba.njit
def _rotate(head: int, cos: int, sin: int, pairs: int, interleaved: int, half: int) -> None:
    """Rotate the pairs of one head."""
    size = 2 if half else 4
    step = 2 * size if interleaved else size
    apart = size if interleaved else pairs * size
    for pair in range(pairs):
        first = head + pair * step
        second = first + apart
        a = scalar_bfloat16(first) if half else scalar(first)
        b = scalar_bfloat16(second) if half else scalar(second)
        c = scalar(cos + 4 * pair)
        s = scalar(sin + 4 * pair)
        rotated_a = np.float32(a * c - b * s)
        rotated_b = np.float32(b * c + a * s)
        if half:
            put_bfloat16(first, rotated_a)
            put_bfloat16(second, rotated_b)
        else:
            put(first, rotated_a)
            put(second, rotated_b)


def _rope(arguments: int) -> None:
    q = operand(arguments, 0)
    q_stride = operand(arguments, 1)
    heads = operand(arguments, 2)
    k = operand(arguments, 3)
    k_stride = operand(arguments, 4)
    kv_heads = operand(arguments, 5)
    cos = operand(arguments, 6)
    sin = operand(arguments, 7)
    positions = operand(arguments, 8)
    pairs = operand(arguments, 10)
    head_bytes = operand(arguments, 11)
    interleaved = operand(arguments, 12)
    half = operand(arguments, 13)
    start, stop = own_rows(arguments, operand(arguments, 9))
    for row in range(start, stop):
        table = 4 * pairs * np.int64(integer(positions + 4 * row))
        for head in range(heads):
            _rotate(q + row * q_stride + head * head_bytes, cos + table, sin + table, pairs, interleaved, half)
        for head in range(kv_heads):
            _rotate(k + row * k_stride + head * head_bytes, cos + table, sin + table, pairs, interleaved, half)


_KERNEL = NativeKernel(_rope)


def rope(
    q: torch.Tensor,
    k: torch.Tensor,
    *,
    cos: torch.Tensor,
    sin: torch.Tensor,
    positions: torch.Tensor,
    interleaved: bool,
) -> None:
    """See `octavo_kernels.operations.rope`."""
    tokens, heads, head_dim = q.shape
    kv_heads = k.shape[1]
    pairs = cos.shape[1]
    size = q.element_size()
    assert q.stride()[1:] == k.stride()[1:] == (head_dim, 1), "heads and dimensions are dense"
    assert q.dtype == k.dtype, "q and k have one dtype"
    assert cos.dtype == sin.dtype == torch.float32, "the tables are float32"
    assert positions.dtype == torch.int32, "positions are int32"
    assert 2 * pairs <= head_dim, "no more dimensions are rotated than a head has"
    _KERNEL(
        tokens * (heads + kv_heads) * pairs,
        q.data_ptr(),
        q.stride(0) * size,
        heads,
        k.data_ptr(),
        k.stride(0) * size,
        kv_heads,
        cos.data_ptr(),
        sin.data_ptr(),
        positions.data_ptr(),
        tokens,
        pairs,
        head_dim * size,
        int(interleaved),
        int(q.dtype == torch.bfloat16),
    )
