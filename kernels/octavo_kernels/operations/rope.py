"""Rotary position embedding of queries and keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from octavo_kernels.dispatch import Implementation, Operation

if TYPE_CHECKING:
    import torch

_OPERATION = Operation(
    "rope",
    Implementation("numba", "octavo_kernels.cpu.rope"),
    Implementation("torch", "octavo_kernels.reference.rope"),
)


def rope(
    q: torch.Tensor,
    k: torch.Tensor,
    *,
    cos: torch.Tensor,
    sin: torch.Tensor,
    positions: torch.Tensor,
    interleaved: bool,
) -> None:
    """Rotate pairs of each head of `q` and `k` in place by the angles of their token's position (Su et al. 2021).

    Dimensions beyond twice the table's width stay as they are.

    Args:
        q: [tokens, heads, head_dim], bfloat16 or float32; rows may lie apart, heads and dimensions are dense.
        k: [tokens, kv_heads, head_dim], likewise.
        cos: float32 [positions, pairs], contiguous: the table by position.
        sin: likewise.
        positions: int32 [tokens].
        interleaved: a pair is dimensions (2i, 2i + 1); otherwise (i, i + pairs), as GPT-NeoX does.
    """
    _OPERATION.on(q.device.type)(q, k, cos=cos, sin=sin, positions=positions, interleaved=interleaved)
