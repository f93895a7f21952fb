"""Reference of `group_product`."""

from __future__ import annotations

import torch

from octavo_kernels.reference.widen_groups import widen_groups


def declines(_device: str) -> str | None:
    """Runs everywhere."""
    return None


def group_product(
    x: torch.Tensor, integers: torch.Tensor, *, scales: torch.Tensor, offsets: torch.Tensor | None, out: torch.Tensor
) -> None:
    """See `octavo_kernels.operations.group_product`."""
    weight = torch.empty(len(integers), x.shape[1], device=x.device)
    widen_groups(integers, scales=scales, offsets=offsets, out=weight)
    out.copy_(x.float() @ weight.T)
