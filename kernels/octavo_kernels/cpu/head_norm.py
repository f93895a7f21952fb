"""`head_norm` on a processor."""

from __future__ import annotations

import numpy as np
import torch

from octavo_kernels.cpu.arithmetic import fma, mul, splat, total
from octavo_kernels.cpu.device import declines
from octavo_kernels.cpu.native_kernel import NativeKernel, float_bits, float_operand, operand, own_rows
from octavo_kernels.cpu.rows import read, write

__all__ = ["declines", "head_norm"]


def _head_norm(arguments: int) -> None:
    x = operand(arguments, 0)
    weight = operand(arguments, 1)
    heads = operand(arguments, 3)
    size = operand(arguments, 4)
    stride = operand(arguments, 5)
    half = operand(arguments, 6)
    epsilon = float_operand(arguments, 7)
    start, stop = own_rows(arguments, operand(arguments, 2) * heads)
    for row in range(start, stop):
        head = x + row // heads * stride + row % heads * size * (2 if half else 4)
        squares = splat(np.float32(0))
        for index in range(0, size, 16):
            values = read(head, index, size, half)
            squares = fma(values, values, squares)
        mean = np.float64(total(squares)) / size
        scale = splat(np.float32(1.0 / np.sqrt(mean + epsilon)))
        for index in range(0, size, 16):
            values = mul(read(head, index, size, half), scale)
            write(head, index, size, half, mul(values, read(weight, index, size, 0)))


_KERNEL = NativeKernel(_head_norm)


def head_norm(x: torch.Tensor, *, weight: torch.Tensor, epsilon: float) -> None:
    """See `octavo_kernels.operations.head_norm`."""
    tokens, heads, size = x.shape
    assert x.stride()[1:] == (size, 1), "heads and dimensions are dense"
    assert x.dtype in (torch.bfloat16, torch.float32), "heads are bfloat16 or float32"
    assert weight.dtype == torch.float32, "the weight is float32"
    assert weight.shape == (size,), "the weight has a number for each dimension"
    _KERNEL(
        tokens * heads * size // 4,
        x.data_ptr(),
        weight.data_ptr(),
        tokens,
        heads,
        size,
        x.stride(0) * x.element_size(),
        int(x.dtype == torch.bfloat16),
        float_bits(epsilon),
    )
