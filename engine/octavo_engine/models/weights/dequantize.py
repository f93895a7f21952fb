"""Turns the stored blocks of a tensor into numbers, whole tensors at a time. Results equal ggml's bit for bit."""

from __future__ import annotations

import torch

from octavo_engine.models.files.tensor_type import READABLE, TensorType
from octavo_engine.models.weights.block_formats import READERS
from octavo_engine.models.weights.weight_groups import WeightGroups

_PLAIN = {TensorType.F32: torch.float32, TensorType.F16: torch.float16, TensorType.BF16: torch.bfloat16}
_FOUR_BITS = frozenset({TensorType.Q4_0, TensorType.Q4_1, TensorType.Q4_K})


def dequantize(raw: torch.Tensor, kind: TensorType, shape: tuple[int, ...]) -> torch.Tensor:
    """The values of a tensor.

    Args:
        raw: uint8 [bytes]: the tensor as it is stored.
        kind: its format, one of `READABLE`.
        shape: its shape.

    Returns:
        float32 of `shape`.
    """
    assert kind in READABLE, f"{kind.name} is refused when the header is read"
    if kind in _PLAIN:
        return raw.view(_PLAIN[kind]).float().reshape(shape)
    groups = stored_groups(raw, kind, (raw.numel() // kind.block_bytes, kind.block_length))
    assert groups is not None
    return groups.values().view(shape)


def stored_groups(raw: torch.Tensor, kind: TensorType, shape: tuple[int, ...]) -> WeightGroups | None:
    """The groups of a matrix [outputs, inputs] as they are stored, without another rounding; None in plain formats."""
    reader = READERS.get(kind)
    if reader is None:
        return None
    integers, scales, offsets = reader(raw.view(-1, kind.block_bytes))
    return WeightGroups(
        integers.reshape(shape),
        scales.reshape(shape[0], -1),
        None if offsets is None else offsets.reshape(shape[0], -1),
        4 if kind in _FOUR_BITS else 8,
    )
