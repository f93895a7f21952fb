"""Reference of `rms_norm`."""

from __future__ import annotations

import torch


def declines(_device: str) -> str | None:
    """Runs everywhere."""
    return None


def rms_norm(
    residual: torch.Tensor,
    update: torch.Tensor | None,
    *,
    weight: torch.Tensor,
    epsilon: float,
    out: torch.Tensor,
) -> None:
    """See `octavo_kernels.operations.rms_norm`."""
    if update is not None:
        residual += update
    scale = torch.rsqrt(residual.square().mean(dim=-1, keepdim=True) + epsilon)
    out.copy_(residual * scale * weight)
