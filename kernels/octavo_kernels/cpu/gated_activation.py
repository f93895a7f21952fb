"""`gated_activation` on a processor."""

from __future__ import annotations

import numpy as np
import torch

from octavo_kernels.cpu.arithmetic import add, div, exp, fma, mul, splat, sub
from octavo_kernels.cpu.device import declines
from octavo_kernels.cpu.native_kernel import NativeKernel, operand, own_rows
from octavo_kernels.cpu.rows import read, write

__all__ = ["declines", "gated_activation"]

TWICE_ROOT = np.float32(2 * np.sqrt(2 / np.pi))
CUBIC = np.float32(0.044715)


def _gated_activation(arguments: int) -> None:
    gate_up = operand(arguments, 0)
    out = operand(arguments, 1)
    width = operand(arguments, 3)
    half = operand(arguments, 4)
    gelu = operand(arguments, 5)
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
            slope = gate
            if gelu:
                # (1 + tanh(x)) / 2 is the logistic function of 2 x.
                cube = mul(mul(gate, gate), gate)
                slope = mul(fma(cube, splat(CUBIC), gate), splat(TWICE_ROOT))
            sigmoid = div(one, add(one, exp(sub(zero, slope))))
            write(target, index, width, half, mul(mul(gate, sigmoid), read(ups, index, width, half)))


_KERNEL = NativeKernel(_gated_activation)


def gated_activation(gate_up: torch.Tensor, out: torch.Tensor, *, activation: str) -> None:
    """See `octavo_kernels.operations.gated_activation`."""
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
        int(activation == "gelu_tanh"),
    )
