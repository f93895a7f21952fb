"""`rms_norm` on a processor: residual addition, mean square and scaling, two passes over a row that lies in cache."""

from __future__ import annotations

import numpy as np
import torch

from octavo_kernels.cpu.arithmetic import add, fma, mul, splat, total
from octavo_kernels.cpu.device import declines
from octavo_kernels.cpu.native_kernel import NativeKernel, float_bits, float_operand, operand, own_rows
from octavo_kernels.cpu.rows import read, write

__all__ = ["declines", "rms_norm"]


def _rms_norm(arguments: int) -> None:
    residual = operand(arguments, 0)
    update = operand(arguments, 1)
    weight = operand(arguments, 2)
    out = operand(arguments, 3)
    hidden = operand(arguments, 5)
    update_half = operand(arguments, 6)
    out_half = operand(arguments, 7)
    epsilon = float_operand(arguments, 8)
    start, stop = own_rows(arguments, operand(arguments, 4))
    for row in range(start, stop):
        stream = residual + 4 * row * hidden
        added = update + (2 if update_half else 4) * row * hidden
        target = out + (2 if out_half else 4) * row * hidden
        squares = splat(np.float32(0))
        for index in range(0, hidden, 16):
            values = read(stream, index, hidden, 0)
            if update != 0:
                values = add(values, read(added, index, hidden, update_half))
                write(stream, index, hidden, 0, values)
            squares = fma(values, values, squares)
        mean = np.float64(total(squares)) / hidden
        scale = splat(np.float32(1.0 / np.sqrt(mean + epsilon)))
        for index in range(0, hidden, 16):
            values = mul(read(stream, index, hidden, 0), scale)
            write(target, index, hidden, out_half, mul(values, read(weight, index, hidden, 0)))


_KERNEL = NativeKernel(_rms_norm)


def rms_norm(
    residual: torch.Tensor,
    update: torch.Tensor | None,
    *,
    weight: torch.Tensor,
    epsilon: float,
    out: torch.Tensor,
) -> None:
    """See `octavo_kernels.operations.rms_norm`."""
    tokens, hidden = residual.shape
    assert residual.dtype == weight.dtype == torch.float32, "residual and weight are float32"
    assert out.shape == residual.shape, "out has the shape of the residual stream"
    assert residual.is_contiguous(), "rows are dense"
    assert out.is_contiguous(), "rows are dense"
    if update is not None:
        assert update.shape == residual.shape, "update has the shape of the residual stream"
        assert update.is_contiguous(), "rows are dense"
    _KERNEL(
        tokens * hidden // 4,
        residual.data_ptr(),
        0 if update is None else update.data_ptr(),
        weight.data_ptr(),
        out.data_ptr(),
        tokens,
        hidden,
        int(update is not None and update.dtype == torch.bfloat16),
        int(out.dtype == torch.bfloat16),
        float_bits(epsilon),
    )
