"""How ggml's block formats lie in memory: small integers in groups along a row, each group with a scale.

Formats: ggml's ggml-common.h and ggml-quants.c. Each reader takes the blocks of a tensor, uint8 [blocks, bytes], and
gives integers, scales and offsets with w = integer * scale + offset. Knows no matrices.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from octavo_engine.models.files.tensor_type import TensorType

# Integers int8 [blocks, values], scales float32 [blocks, groups], offsets likewise or None for none.
Parts = tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]

_IQ4_VALUES = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)
# Twice the values of FP4 (E2M1), so that they are whole; the scale is halved.
_FP4_VALUES = (0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12)


def _number(blocks: torch.Tensor, start: int) -> torch.Tensor:
    """The half-precision number at byte `start` of each block: float32 [blocks, 1]."""
    return blocks[:, start : start + 2].view(torch.float16).float()


def _nibbles(packed: torch.Tensor) -> torch.Tensor:
    """uint8 [blocks, n] to uint8 [blocks, 2 n]: the low halves, then the high halves."""
    count = packed.shape[1]
    halves = torch.empty(packed.shape[0], 2 * count, dtype=torch.uint8)
    torch.bitwise_and(packed, 15, out=halves[:, :count])
    torch.bitwise_right_shift(packed, 4, out=halves[:, count:])
    return halves


def _interleaved_nibbles(packed: torch.Tensor, run: int) -> torch.Tensor:
    """The same for each run of `run` bytes."""
    return _nibbles(packed.reshape(-1, run)).view(packed.shape[0], -1)


def _bits(packed: torch.Tensor, run: int, width: int) -> torch.Tensor:
    """Fields of `width` bits of each run of bytes: all first fields of the run, then all second ones, and so on."""
    shifts = torch.arange(0, 8, width, dtype=torch.uint8).view(1, -1, 1)
    runs = packed.reshape(-1, 1, run)
    return ((runs >> shifts) & ((1 << width) - 1)).view(packed.shape[0], -1)


def _word_bits(packed: torch.Tensor) -> torch.Tensor:
    """uint8 [blocks, 4] to uint8 [blocks, 32]: the bits from the lowest on."""
    return ((packed.unsqueeze(2) >> torch.arange(8, dtype=torch.uint8)) & 1).view(packed.shape[0], 32)


def _looked_up(indices: torch.Tensor, values: tuple[int, ...]) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int8)[indices.int()]


def _q4_0(blocks: torch.Tensor) -> Parts:
    return _nibbles(blocks[:, 2:]).view(torch.int8) - 8, _number(blocks, 0), None


def _q4_1(blocks: torch.Tensor) -> Parts:
    return _nibbles(blocks[:, 4:]).view(torch.int8), _number(blocks, 0), _number(blocks, 2)


def _q5_0(blocks: torch.Tensor) -> Parts:
    integers = _nibbles(blocks[:, 6:]) | (_word_bits(blocks[:, 2:6]) << 4)
    return integers.view(torch.int8) - 16, _number(blocks, 0), None


def _q5_1(blocks: torch.Tensor) -> Parts:
    integers = _nibbles(blocks[:, 8:]) | (_word_bits(blocks[:, 4:8]) << 4)
    return integers.view(torch.int8), _number(blocks, 0), _number(blocks, 2)


def _q8_0(blocks: torch.Tensor) -> Parts:
    return blocks[:, 2:].view(torch.int8), _number(blocks, 0), None


def _q2_k(blocks: torch.Tensor) -> Parts:
    scales, minima = blocks[:, :16] & 15, blocks[:, :16] >> 4
    integers = _bits(blocks[:, 16:80], 32, 2)
    return integers.view(torch.int8), _number(blocks, 80) * scales, -(_number(blocks, 82) * minima)


def _q3_k(blocks: torch.Tensor) -> Parts:
    low = _nibbles(blocks[:, 96:104])
    high = _bits(blocks[:, 104:108], 4, 2)
    scales = (low | (high << 4)).view(torch.int8) - 32
    # The offset is there where the bit is not.
    missing = _bits(blocks[:, :32], 32, 1) ^ 1
    integers = _bits(blocks[:, 32:96], 32, 2).view(torch.int8) - (missing << 2).view(torch.int8)
    return integers, _number(blocks, 108) * scales, None


def _k_scales(blocks: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Scales and offsets of Q4_K and Q5_K: eight pairs of 6-bit numbers in twelve bytes."""
    first, second, third = blocks[:, 4:8], blocks[:, 8:12], blocks[:, 12:16]
    scales = torch.cat((first & 63, (third & 15) | ((first >> 2) & 48)), dim=1)
    minima = torch.cat((second & 63, (third >> 4) | ((second >> 2) & 48)), dim=1)
    return _number(blocks, 0) * scales, -(_number(blocks, 2) * minima)


def _q4_k(blocks: torch.Tensor) -> Parts:
    scales, offsets = _k_scales(blocks)
    return _interleaved_nibbles(blocks[:, 16:], 32).view(torch.int8), scales, offsets


def _q5_k(blocks: torch.Tensor) -> Parts:
    scales, offsets = _k_scales(blocks)
    integers = _interleaved_nibbles(blocks[:, 48:], 32) | (_bits(blocks[:, 16:48], 32, 1) << 4)
    return integers.view(torch.int8), scales, offsets


def _q6_k(blocks: torch.Tensor) -> Parts:
    integers = _interleaved_nibbles(blocks[:, :128], 64) | (_bits(blocks[:, 128:192], 32, 2) << 4)
    scales = _number(blocks, 208) * blocks[:, 192:208].view(torch.int8)
    return integers.view(torch.int8) - 32, scales, None


def _iq4_nl(blocks: torch.Tensor) -> Parts:
    return _looked_up(_nibbles(blocks[:, 2:]), _IQ4_VALUES), _number(blocks, 0), None


def _iq4_xs(blocks: torch.Tensor) -> Parts:
    low = torch.stack((blocks[:, 4:8] & 15, blocks[:, 4:8] >> 4), dim=2).view(-1, 8)
    shifts = torch.arange(0, 8, 2, dtype=torch.uint8)
    high = ((blocks[:, 2:4].unsqueeze(2) >> shifts) & 3).view(-1, 8)
    scales = (low | (high << 4)).view(torch.int8) - 32
    return _looked_up(_interleaved_nibbles(blocks[:, 8:], 16), _IQ4_VALUES), _number(blocks, 0) * scales, None


def _mxfp4(blocks: torch.Tensor) -> Parts:
    exponents = blocks[:, :1].int()
    # 2 ** (e - 128): half of what the exponent says; the two smallest are denormal.
    bits = torch.where(exponents < 2, 0x00200000 << exponents, (exponents - 1).clamp(min=0) << 23)
    return _looked_up(_nibbles(blocks[:, 1:]), _FP4_VALUES), bits.view(torch.float32), None


READERS: dict[TensorType, Callable[[torch.Tensor], Parts]] = {
    TensorType.Q4_0: _q4_0,
    TensorType.Q4_1: _q4_1,
    TensorType.Q5_0: _q5_0,
    TensorType.Q5_1: _q5_1,
    TensorType.Q8_0: _q8_0,
    TensorType.Q2_K: _q2_k,
    TensorType.Q3_K: _q3_k,
    TensorType.Q4_K: _q4_k,
    TensorType.Q5_K: _q5_k,
    TensorType.Q6_K: _q6_k,
    TensorType.IQ4_NL: _iq4_nl,
    TensorType.IQ4_XS: _iq4_xs,
    TensorType.MXFP4: _mxfp4,
}
