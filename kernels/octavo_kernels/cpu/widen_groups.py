"""`widen_groups` on a processor."""

from __future__ import annotations

import torch

from octavo_kernels.cpu.arithmetic import add, splat
from octavo_kernels.cpu.device import declines
from octavo_kernels.cpu.group_rows import RUN, scaled_run
from octavo_kernels.cpu.memory import scalar_bfloat16, store, store_finite_bfloat16
from octavo_kernels.cpu.native_kernel import NativeKernel, operand, own_rows

__all__ = ["declines", "widen_groups"]


def _widen_groups(arguments: int) -> None:
    integers = operand(arguments, 0)
    scales = operand(arguments, 1)
    offsets = operand(arguments, 2)
    out = operand(arguments, 3)
    columns = operand(arguments, 5)
    each = operand(arguments, 6)
    four = operand(arguments, 7)
    half = operand(arguments, 8)
    groups = columns // RUN * each
    start, stop = own_rows(arguments, operand(arguments, 4))
    for row in range(start, stop):
        packed = integers + row * (columns // 2 if four else columns)
        target = out + row * columns * (2 if half else 4)
        for run in range(columns // RUN):
            first, second = scaled_run(packed, run, scales + 2 * row * groups, each, four)
            if offsets != 0:
                place = offsets + 2 * (row * groups + run * each)
                first = add(first, splat(scalar_bfloat16(place)))
                second = add(second, splat(scalar_bfloat16(place + 2 * (each - 1))))
            if half:
                store_finite_bfloat16(target + 2 * RUN * run, first)
                store_finite_bfloat16(target + 2 * RUN * run + 32, second)
            else:
                store(target + 4 * RUN * run, first)
                store(target + 4 * RUN * run + 64, second)


_KERNEL = NativeKernel(_widen_groups)


def widen_groups(
    integers: torch.Tensor, *, scales: torch.Tensor, offsets: torch.Tensor | None, out: torch.Tensor
) -> None:
    """See `octavo_kernels.operations.widen_groups`."""
    rows, columns = out.shape
    check_groups(integers, scales, offsets, columns)
    assert out.is_contiguous(), "rows are dense"
    _KERNEL(
        rows * columns // 8,
        integers.data_ptr(),
        scales.data_ptr(),
        0 if offsets is None else offsets.data_ptr(),
        out.data_ptr(),
        rows,
        columns,
        scales.shape[1] * RUN // columns,
        int(integers.dtype == torch.uint8),
        int(out.dtype == torch.bfloat16),
    )


def check_groups(integers: torch.Tensor, scales: torch.Tensor, offsets: torch.Tensor | None, columns: int) -> None:
    """Assert what `group_product` says of its matrix."""
    packed = columns // 2 if integers.dtype == torch.uint8 else columns
    assert integers.shape == (len(scales), packed), "the integers have the matrix's shape"
    assert columns % RUN == 0, "inputs are a multiple of 32"
    group = columns // scales.shape[1]
    assert group * scales.shape[1] == columns, "groups divide the inputs"
    assert group in (RUN // 2, RUN), "a group has 16 or 32 inputs"
    assert scales.dtype == torch.bfloat16, "scales are bfloat16"
    assert scales.is_contiguous(), "scales are dense"
    assert integers.is_contiguous(), "integers are dense"
    if offsets is not None:
        assert offsets.shape == scales.shape, "offsets have the shape of the scales"
        assert offsets.dtype == scales.dtype, "offsets are bfloat16"
        assert offsets.is_contiguous(), "offsets are dense"
