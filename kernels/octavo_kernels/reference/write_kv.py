"""Reference of `write_kv`."""

from __future__ import annotations

import torch


def declines(_device: str) -> str | None:
    """Runs everywhere."""
    return None


def write_kv(k: torch.Tensor, v: torch.Tensor, *, kv_layer: torch.Tensor, slots: torch.Tensor) -> None:
    """See `octavo_kernels.operations.write_kv`."""
    page_size = kv_layer.shape[3]
    pages, offsets = slots // page_size, slots % page_size
    kv_layer[0, pages, :, offsets] = k
    kv_layer[1, pages, :, offsets] = v
