"""Small integers in groups back to numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from octavo_kernels.dispatch import Implementation, Operation

if TYPE_CHECKING:
    import torch

_OPERATION = Operation(
    "widen_groups",
    Implementation("numba", "octavo_kernels.cpu.widen_groups"),
    Implementation("torch", "octavo_kernels.reference.widen_groups"),
)


def widen_groups(
    integers: torch.Tensor, *, scales: torch.Tensor, offsets: torch.Tensor | None, out: torch.Tensor
) -> None:
    """Write integer * scale + offset to `out`.

    Args:
        integers: as `group_product` has them.
        scales: likewise.
        offsets: likewise.
        out: [outputs, inputs], contiguous, bfloat16 or float32.
    """
    _OPERATION.on(out.device.type)(integers, scales=scales, offsets=offsets, out=out)
