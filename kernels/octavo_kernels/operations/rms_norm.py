"""Residual addition and root-mean-square normalisation in one pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

from octavo_kernels.dispatch import Implementation, Operation

if TYPE_CHECKING:
    import torch

_OPERATION = Operation(
    "rms_norm",
    Implementation("numba", "octavo_kernels.cpu.rms_norm"),
    Implementation("torch", "octavo_kernels.reference.rms_norm"),
)


def rms_norm(
    residual: torch.Tensor,
    update: torch.Tensor | None,
    *,
    weight: torch.Tensor,
    epsilon: float,
    out: torch.Tensor,
) -> None:
    """Add `update` to the residual stream in place, then write its normalised rows to `out`.

    out[t] = residual[t] / sqrt(mean(residual[t] ** 2) + epsilon) * weight (Zhang and Sennrich 2019), in float32.

    Args:
        residual: float32 [tokens, hidden], contiguous.
        update: [tokens, hidden], contiguous, bfloat16 or float32, or None to add nothing.
        weight: float32 [hidden].
        epsilon: added to the mean square.
        out: [tokens, hidden], contiguous, bfloat16 or float32.
    """
    _OPERATION.on(residual.device.type)(residual, update, weight=weight, epsilon=epsilon, out=out)
