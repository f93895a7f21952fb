"""Reference of `head_norm`."""

from __future__ import annotations

import torch


def declines(_device: str) -> str | None:
    """Runs everywhere."""
    return None


def head_norm(x: torch.Tensor, *, weight: torch.Tensor, epsilon: float) -> None:
    """See `octavo_kernels.operations.head_norm`."""
    values = x.float()
    x.copy_(values * torch.rsqrt(values.square().mean(dim=-1, keepdim=True) + epsilon) * weight)
