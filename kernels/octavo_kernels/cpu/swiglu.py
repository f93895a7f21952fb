"""`swiglu` on a processor."""

from __future__ import annotations

import numpy as np
import torch

from octavo_kernels.cpu.arithmetic import add, div, exp, mul, splat, sub
from octavo_kernels.cpu.device import declines
from octavo_kernels.cpu.native_kernel import NativeKernel, operand, own_rows
from octavo_kernels.cpu.rows import read, write

__all__ = ["declines", "swiglu"]


def _swiglu(arguments: int) -> None:
    gate_up = operand(arguments, 0)
    out = operand(arguments, 1)
    width = operand(arguments, 3)
    half = operand(arguments, 4)
    size = 2 if half else 4
    one = splat(np.float32(1))
    zero = splat(np.float32(0))
    start, stop = own_rows(arguments, operand(arguments, 2))
    for row in range(start, stop):
        gates = gate_up + size * 2 * row * width
        ups = gates + size * width
        target = out + size * row * width
        for index in range(0, width, 16):
            gate = read(gates, index, width, half)
            sigmoid = div(one, add(one, exp(sub(zero, gate))))
            write(target, index, width, half, mul(mul(gate, sigmoid), read(ups, index, width, half)))


_KERNEL = NativeKernel(_swiglu)


def swiglu(gate_up: torch.Tensor, out: torch.Tensor) -> None:
    """See `octavo_kernels.operations.swiglu`."""
    tokens, width = out.shape
    assert gate_up.shape == (tokens, 2 * width), "gate_up holds gate and up for each number of out"
    assert gate_up.dtype == out.dtype, "gate_up and out have one dtype"
    assert gate_up.is_contiguous(), "rows are dense"
    assert out.is_contiguous(), "rows are dense"
    _KERNEL(
        2 * tokens * width,
        gate_up.data_ptr(),
        out.data_ptr(),
        tokens,
        width,
        int(out.dtype == torch.bfloat16),
    )
