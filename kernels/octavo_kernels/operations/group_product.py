"""Products with a matrix of small integers in groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from octavo_kernels.dispatch import Implementation, Operation

if TYPE_CHECKING:
    import torch

_OPERATION = Operation(
    "group_product",
    Implementation("numba", "octavo_kernels.cpu.group_product"),
    Implementation("torch", "octavo_kernels.reference.group_product"),
)


def group_product(
    x: torch.Tensor,
    integers: torch.Tensor,
    *,
    scales: torch.Tensor,
    offsets: torch.Tensor | None,
    out: torch.Tensor,
) -> None:
    """Write x times the transposed matrix w[o, i] = integer[o, i] * scale[o, g] + offset[o, g] to `out`.

    Sums are float32 and in one order for every number of rows. Made for few rows: the matrix is read once for all.

    Args:
        x: [tokens, inputs], contiguous, bfloat16 or float32; inputs are a multiple of 32.
        integers: contiguous. int8 [outputs, inputs]; or uint8 [outputs, inputs / 2] with two in a byte: of each
            16 bytes the low halves are inputs 0 to 15, the high ones 16 to 31, each 8 more than the integer.
        scales: bfloat16 [outputs, groups], contiguous; a group is 16 or 32 inputs.
        offsets: likewise, or None for none.
        out: [tokens, outputs], contiguous, in the dtype of `x`.
    """
    _OPERATION.on(x.device.type)(x, integers, scales=scales, offsets=offsets, out=out)
