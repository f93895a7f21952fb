"""Turns the stored blocks of a tensor into float32 numbers, whole tensors at a time.

Block formats: ggml's ggml-quants.h. Results equal ggml's bit for bit. Knows no model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from octavo_engine.models.tensor_type import READABLE, TensorType


@dataclass(frozen=True, slots=True)
class FourBitGroups:
    """A matrix as w = (quant - 8) * scale + zero in groups of 32 along a row.

    Attributes:
        quants: uint8 [outputs, inputs], 0 to 15.
        scales: float32 [outputs, inputs / 32].
        zeros: float32 [outputs, inputs / 32].
    """

    quants: torch.Tensor
    scales: torch.Tensor
    zeros: torch.Tensor


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
    return _READERS[kind](raw.view(-1, kind.block_bytes)).reshape(shape)


def four_bit_groups(raw: torch.Tensor, kind: TensorType, shape: tuple[int, ...]) -> FourBitGroups | None:
    """The groups of a matrix [outputs, inputs] as they are stored, without another rounding; None in other formats."""
    if kind not in (TensorType.Q4_0, TensorType.Q4_1):
        return None
    blocks = raw.view(-1, kind.block_bytes)
    scales = _scale(blocks, 0)
    zeros = torch.zeros_like(scales) if kind is TensorType.Q4_0 else _scale(blocks, 2) + 8 * scales
    quants = torch.empty(blocks.shape[0], 32, dtype=torch.uint8)
    packed = blocks[:, -16:]
    torch.bitwise_and(packed, 15, out=quants[:, :16])
    torch.bitwise_right_shift(packed, 4, out=quants[:, 16:])
    groups = (shape[0], shape[1] // 32)
    return FourBitGroups(quants.view(shape), scales.view(groups), zeros.view(groups))


def _scale(blocks: torch.Tensor, start: int) -> torch.Tensor:
    """The half-precision number at byte `start` of each block: float32 [blocks, 1]."""
    return blocks[:, start : start + 2].view(torch.float16).float()


def _nibbles(packed: torch.Tensor) -> torch.Tensor:
    """uint8 [blocks, 16] to uint8 [blocks, 32]: the low halves, then the high halves."""
    return torch.cat((packed & 15, packed >> 4), dim=1)


def _f32(blocks: torch.Tensor) -> torch.Tensor:
    return blocks.view(torch.float32)


def _f16(blocks: torch.Tensor) -> torch.Tensor:
    return blocks.view(torch.float16).float()


def _bf16(blocks: torch.Tensor) -> torch.Tensor:
    return blocks.view(torch.bfloat16).float()


def _q4_0(blocks: torch.Tensor) -> torch.Tensor:
    return (_nibbles(blocks[:, 2:]).view(torch.int8) - 8) * _scale(blocks, 0)


def _q4_1(blocks: torch.Tensor) -> torch.Tensor:
    return (_nibbles(blocks[:, 4:]) * _scale(blocks, 0)).add_(_scale(blocks, 2))


def _q8_0(blocks: torch.Tensor) -> torch.Tensor:
    return blocks[:, 2:].view(torch.int8) * _scale(blocks, 0)


_READERS: dict[TensorType, Callable[[torch.Tensor], torch.Tensor]] = {
    TensorType.F32: _f32,
    TensorType.F16: _f16,
    TensorType.BF16: _bf16,
    TensorType.Q4_0: _q4_0,
    TensorType.Q4_1: _q4_1,
    TensorType.Q8_0: _q8_0,
}
