"""Reference of `widen_groups`."""

from __future__ import annotations

import torch


def declines(_device: str) -> str | None:
    """Runs everywhere."""
    return None


def widen_groups(
    integers: torch.Tensor, *, scales: torch.Tensor, offsets: torch.Tensor | None, out: torch.Tensor
) -> None:
    """See `octavo_kernels.operations.widen_groups`."""
    values = integers.float()
    if integers.dtype == torch.uint8:
        runs = integers.view(len(integers), -1, 16)
        values = torch.cat((runs & 15, runs >> 4), dim=2).flatten(1).float() - 8
    group = values.shape[1] // scales.shape[1]
    values = values * scales.float().repeat_interleave(group, dim=1)
    if offsets is not None:
        values += offsets.float().repeat_interleave(group, dim=1)
    out.copy_(values)
