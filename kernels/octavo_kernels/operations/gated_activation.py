"""The gated activation of the feed-forward block."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from octavo_kernels.dispatch import Implementation, Operation

if TYPE_CHECKING:
    import torch

Activation = Literal["silu", "gelu_tanh"]

_OPERATION = Operation(
    "gated_activation",
    Implementation("numba", "octavo_kernels.cpu.gated_activation"),
    Implementation("torch", "octavo_kernels.reference.gated_activation"),
)


def gated_activation(gate_up: torch.Tensor, out: torch.Tensor, *, activation: Activation = "silu") -> None:
    """Write activation(gate) * up to `out`, in float32 (Shazeer 2020).

    Args:
        gate_up: [tokens, 2 * width], contiguous: gate in the first half of each row, up in the second.
        out: [tokens, width], contiguous, in the dtype of `gate_up` (bfloat16 or float32).
        activation: "silu": x / (1 + exp(-x)); "gelu_tanh": x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x ** 3))).
    """
    _OPERATION.on(gate_up.device.type)(gate_up, out, activation=activation)
