"""Storing new keys and values in KV pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from octavo_kernels.dispatch import Implementation, Operation

if TYPE_CHECKING:
    import torch

_OPERATION = Operation(
    "write_kv",
    Implementation("numba", "octavo_kernels.cpu.write_kv"),
    Implementation("torch", "octavo_kernels.reference.write_kv"),
)


def write_kv(k: torch.Tensor, v: torch.Tensor, *, kv_layer: torch.Tensor, slots: torch.Tensor) -> None:
    """Write each token's keys and values to its slot; no two tokens have the same slot.

    Args:
        k: [tokens, kv_heads, head_dim] in the dtype of `kv_layer`; rows may lie apart, heads and dimensions are dense.
        v: likewise.
        kv_layer: [2, pages, kv_heads, page_size, head_dim], contiguous: keys, then values.
        slots: int64 [tokens]: page * page_size + offset within the page.
    """
    _OPERATION.on(k.device.type)(k, v, kv_layer=kv_layer, slots=slots)
