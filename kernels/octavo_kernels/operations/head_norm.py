"""Root-mean-square normalisation of heads, or of any short rows, in place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from octavo_kernels.dispatch import Implementation, Operation

if TYPE_CHECKING:
    import torch

_OPERATION = Operation(
    "head_norm",
    Implementation("numba", "octavo_kernels.cpu.head_norm"),
    Implementation("torch", "octavo_kernels.reference.head_norm"),
)


def head_norm(x: torch.Tensor, *, weight: torch.Tensor, epsilon: float) -> None:
    """Normalise each head of each token in place: x / sqrt(mean(x ** 2) + epsilon) * weight, in float32.

    Args:
        x: [tokens, heads, size], bfloat16 or float32; rows may lie apart, heads and dimensions are dense.
        weight: float32 [size], contiguous.
        epsilon: added to the mean square.
    """
    _OPERATION.on(x.device.type)(x, weight=weight, epsilon=epsilon)
