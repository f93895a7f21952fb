"""`write_kv` on a processor: copies of whole heads, eight bytes at a time."""

from __future__ import annotations

import numba
import torch

from octavo_kernels.cpu.device import declines
from octavo_kernels.cpu.memory import long, put_long
from octavo_kernels.cpu.native_kernel import NativeKernel, operand, own_rows

__all__ = ["declines", "write_kv"]


@numba.njit
def _copy(source: int, target: int, nbytes: int) -> None:
    for offset in range(0, nbytes, 8):
        put_long(target + offset, long(source + offset))


def _write_kv(arguments: int) -> None:
    k = operand(arguments, 0)
    k_stride = operand(arguments, 1)
    v = operand(arguments, 2)
    v_stride = operand(arguments, 3)
    keys = operand(arguments, 4)
    values = operand(arguments, 5)
    slots = operand(arguments, 6)
    kv_heads = operand(arguments, 8)
    page_size = operand(arguments, 9)
    head_bytes = operand(arguments, 10)
    start, stop = own_rows(arguments, operand(arguments, 7))
    for row in range(start, stop):
        slot = long(slots + 8 * row)
        page = slot // page_size
        first = (page * kv_heads * page_size + slot - page * page_size) * head_bytes
        for head in range(kv_heads):
            place = first + head * page_size * head_bytes
            _copy(k + row * k_stride + head * head_bytes, keys + place, head_bytes)
            _copy(v + row * v_stride + head * head_bytes, values + place, head_bytes)


_KERNEL = NativeKernel(_write_kv)


def write_kv(k: torch.Tensor, v: torch.Tensor, *, kv_layer: torch.Tensor, slots: torch.Tensor) -> None:
    """See `octavo_kernels.operations.write_kv`."""
    tokens, kv_heads, head_dim = k.shape
    _, pages, _, page_size, _ = kv_layer.shape
    size = k.element_size()
    assert k.shape == v.shape, "there is a value for each key"
    assert k.stride()[1:] == v.stride()[1:] == (head_dim, 1), "heads and dimensions are dense"
    assert k.dtype == v.dtype == kv_layer.dtype, "keys and values have the dtype of the pages"
    assert kv_layer.shape == (2, pages, kv_heads, page_size, head_dim), "the pages hold these heads"
    assert kv_layer.is_contiguous(), "pages are dense"
    assert slots.dtype == torch.int64, "slots are int64"
    keys = kv_layer.data_ptr()
    _KERNEL(
        tokens * kv_heads * head_dim // 4,
        k.data_ptr(),
        k.stride(0) * size,
        v.data_ptr(),
        v.stride(0) * size,
        keys,
        keys + kv_layer.stride(0) * size,
        slots.data_ptr(),
        tokens,
        kv_heads,
        page_size,
        head_dim * size,
    )
