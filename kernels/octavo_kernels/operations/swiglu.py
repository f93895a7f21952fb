"""The gated activation of the feed-forward block."""

from __future__ import annotations

from typing import TYPE_CHECKING

from octavo_kernels.dispatch import Implementation, Operation

if TYPE_CHECKING:
    import torch

_OPERATION = Operation(
    "swiglu",
    Implementation("numba", "octavo_kernels.cpu.swiglu"),
    Implementation("torch", "octavo_kernels.reference.swiglu"),
)


def swiglu(gate_up: torch.Tensor, out: torch.Tensor) -> None:
    """Write silu(gate) * up to `out`, in float32 (Shazeer 2020).

    Args:
        gate_up: [tokens, 2 * width], contiguous: gate in the first half of each row, up in the second.
        out: [tokens, width], contiguous, in the dtype of `gate_up` (bfloat16 or float32).
    """
    _OPERATION.on(gate_up.device.type)(gate_up, out)
