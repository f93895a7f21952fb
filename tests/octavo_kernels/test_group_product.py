"""Products with packed integers against their torch twin, and a row of them against itself in any company."""

from __future__ import annotations

import pytest
import torch

import octavo_kernels as kernels
from octavo_kernels import forced

SHAPES = [(1, 16, 32), (2, 7, 64), (3, 50, 96), (4, 33, 576), (5, 9, 1536), (16, 40, 320), (33, 24, 64), (70, 17, 128)]


def matrix(outputs: int, inputs: int, *, bits: int, group: int, offsets: bool) -> tuple[torch.Tensor, ...]:
    """Integers, scales and offsets."""
    packed = (outputs, inputs // 2) if bits == 4 else (outputs, inputs)
    integers = (
        torch.randint(0, 256, packed, dtype=torch.uint8)
        if bits == 4
        else torch.randint(-128, 128, packed, dtype=torch.int8)
    )
    scales = (torch.rand(outputs, inputs // group) * 0.02).to(torch.bfloat16)
    return integers, scales, torch.randn(scales.shape).to(torch.bfloat16) * 0.1 if offsets else None  # type: ignore[return-value]


def product(x: torch.Tensor, parts: tuple[torch.Tensor, ...]) -> torch.Tensor:
    integers, scales, offsets = parts
    out = torch.full((len(x), len(integers)), torch.nan, dtype=x.dtype)
    kernels.group_product(x, integers, scales=scales, offsets=offsets, out=out)
    return out


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
@pytest.mark.parametrize(("bits", "group"), [(4, 32), (8, 16), (8, 32)])
@pytest.mark.parametrize("offsets", [False, True])
def test_products_equal_those_of_the_twin(dtype: torch.dtype, bits: int, group: int, offsets: bool) -> None:
    for tokens, outputs, inputs in SHAPES:
        if inputs % group:
            continue
        x = torch.randn(tokens, inputs).to(dtype)
        parts = matrix(outputs, inputs, bits=bits, group=group, offsets=offsets)
        ours = product(x, parts)
        with forced("torch", "group_product"):
            theirs = product(x, parts)
        tolerance = 1e-5 if dtype == torch.float32 else 1e-2
        assert (ours - theirs).abs().max() <= tolerance * theirs.abs().max(), (tokens, outputs, inputs)


@pytest.mark.parametrize(("bits", "group"), [(4, 32), (8, 16), (8, 32)])
@pytest.mark.parametrize("offsets", [False, True])
def test_widened_integers_are_their_values(bits: int, group: int, offsets: bool) -> None:
    for dtype in (torch.float32, torch.bfloat16):
        integers, scales, added = matrix(37, 96, bits=bits, group=group, offsets=offsets)
        results = []
        for implementation in ("numba", "torch"):
            out = torch.full((37, 96), torch.nan, dtype=dtype)
            with forced(implementation, "widen_groups"):
                kernels.widen_groups(integers, scales=scales, offsets=added, out=out)
            results.append(out)
        assert torch.equal(*results)


@pytest.mark.parametrize("bits", [4, 8])
def test_a_row_does_not_depend_on_the_number_of_rows(bits: int) -> None:
    parts = matrix(50, 576, bits=bits, group=32, offsets=True)
    x = torch.randn(40, 576).to(torch.bfloat16)
    whole = product(x, parts)
    for start, rows in ((0, 1), (0, 3), (1, 4), (2, 7), (5, 33), (39, 1)):
        assert torch.equal(product(x[start : start + rows].contiguous(), parts), whole[start : start + rows])
