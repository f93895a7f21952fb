"""Reference of `rope`."""

from __future__ import annotations

import torch


def declines(_device: str) -> str | None:
    """Runs everywhere."""
    return None


def rope(
    q: torch.Tensor,
    k: torch.Tensor,
    *,
    cos: torch.Tensor,
    sin: torch.Tensor,
    positions: torch.Tensor,
    interleaved: bool,
) -> None:
    """See `octavo_kernels.operations.rope`."""
    pairs = cos.shape[1]
    row_cos = cos[positions.long()].unsqueeze(1)
    row_sin = sin[positions.long()].unsqueeze(1)
    for heads in (q, k):
        rotated = heads[..., : 2 * pairs]
        if interleaved:
            first, second = rotated[..., 0::2], rotated[..., 1::2]
        else:
            first, second = rotated[..., :pairs], rotated[..., pairs:]
        # A copy, since `first` changes before `second` is computed.
        a, b = first.to(torch.float32, copy=True), second.float()
        first.copy_(a * row_cos - b * row_sin)
        second.copy_(b * row_cos + a * row_sin)
