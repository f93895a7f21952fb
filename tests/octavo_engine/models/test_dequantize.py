"""Every block format against the `gguf` package, bit for bit, and the groups that are computed with."""

from __future__ import annotations

import gguf
import numpy as np
import pytest
import torch

from octavo_engine.models.files.tensor_type import READABLE, TensorType
from octavo_engine.models.weights.dequantize import dequantize, stored_groups
from octavo_engine.models.weights.weight_groups import joined, quantize

BLOCKS = sorted(READABLE - {TensorType.F32, TensorType.F16, TensorType.BF16})
# Where in a block its half-precision numbers stand.
NUMBERS = {
    TensorType.Q4_0: (0,),
    TensorType.Q4_1: (0, 2),
    TensorType.Q5_0: (0,),
    TensorType.Q5_1: (0, 2),
    TensorType.Q8_0: (0,),
    TensorType.Q2_K: (80, 82),
    TensorType.Q3_K: (108,),
    TensorType.Q4_K: (0, 2),
    TensorType.Q5_K: (0, 2),
    TensorType.Q6_K: (208,),
    TensorType.IQ4_NL: (0,),
    TensorType.IQ4_XS: (0,),
    TensorType.MXFP4: (),
}


def random_blocks(kind: TensorType, count: int) -> np.ndarray:
    """Blocks of any bytes, but with numbers that are finite."""
    generator = np.random.default_rng(int(kind))
    blocks = generator.integers(0, 256, (count, kind.block_bytes), dtype=np.uint8)
    for start in NUMBERS[kind]:
        blocks[:, start : start + 2] = generator.normal(0, 0.1, (count, 1)).astype(np.float16).view(np.uint8)
    return blocks


@pytest.mark.parametrize("kind", sorted(READABLE), ids=lambda kind: kind.name)
def test_values_equal_those_of_the_package(kind: TensorType) -> None:
    theirs = gguf.GGMLQuantizationType(int(kind))
    if kind in BLOCKS:
        blocks = random_blocks(kind, 24)
    else:
        blocks = gguf.quants.quantize(np.random.default_rng(0).normal(0, 1, (24, 64)).astype(np.float32), theirs)
    expected = gguf.quants.dequantize(blocks, theirs)
    raw = torch.from_numpy(blocks.view(np.uint8).reshape(-1).copy())
    for shape in (expected.shape, (2, 12, expected.shape[1])):
        values = dequantize(raw, kind, shape)
        assert values.dtype == torch.float32
        assert np.array_equal(values.numpy(), expected.reshape(shape)), kind.name


@pytest.mark.parametrize("kind", BLOCKS, ids=lambda kind: kind.name)
def test_groups_hold_the_values(kind: TensorType) -> None:
    raw = torch.from_numpy(random_blocks(kind, 32).reshape(-1))
    shape = (8, 4 * kind.block_length)
    groups = stored_groups(raw, kind, shape)
    assert groups is not None
    assert torch.equal(groups.values(), dequantize(raw, kind, shape))
    assert groups.group in (16, 32)
    lowest, highest = (int(groups.integers.min()), int(groups.integers.max()))
    if groups.bits == 4:
        assert (lowest, highest) == (-8, 7) if groups.offsets is None else (lowest, highest) == (0, 15)
    assert torch.equal(joined([groups, groups]).values()[8:], groups.values())
    half = groups.times(0.5).values()
    assert ((half - groups.values() * 0.5).abs() <= 1e-6 * half.abs() + 1e-38)[groups.values().isfinite()].all()


@pytest.mark.parametrize(("bits", "error"), [(8, 0.006), (4, 0.1)])
def test_rounding_a_matrix_costs_what_is_stated(bits: int, error: float) -> None:
    values = torch.randn(64, 256, generator=torch.Generator().manual_seed(1))
    values[3, :32] = 0.25
    values[4, 32:64] = 0
    groups = quantize(values, bits)
    assert groups.bits == bits
    lost = (groups.values() - values).square().mean().sqrt() / values.square().mean().sqrt()
    assert error / 3 < lost < error
    # Nothing is off by more than half a step.
    step = groups.scales.repeat_interleave(32, 1)
    assert ((groups.values() - values).abs() <= 0.5001 * step + 1e-7).all()
