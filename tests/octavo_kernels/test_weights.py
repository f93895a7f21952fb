"""Weight layouts multiply by the matrix that they were made from, each row on its own."""

import pytest
import torch

from octavo_kernels.weights import BFloat16Linear, Float32Linear, Int4Linear, Int8Linear, Joined, Linear


def int4(rows: int, columns: int) -> tuple[Int4Linear, torch.Tensor]:
    """A packed matrix and its values."""
    quants = torch.randint(0, 16, (rows, columns), dtype=torch.uint8)
    scales = (torch.rand(rows, columns // 32) * 0.1).to(torch.bfloat16)
    zeros = torch.randn(rows, columns // 32).to(torch.bfloat16) * 0.1
    values = (quants.float() - 8) * scales.float().repeat_interleave(32, 1) + zeros.float().repeat_interleave(32, 1)
    return Int4Linear(quants, scales=scales, zeros=zeros, crossing=None), values


@pytest.mark.parametrize("rows", [1, 2, 7, 33])
def test_int4_multiplies_by_its_values(rows: int) -> None:
    layout, values = int4(64, 96)
    x = torch.randn(rows, 96).to(torch.bfloat16)
    expected = x.float() @ values.T
    assert (layout(x).float() - expected).abs().max() < 0.02 * expected.abs().max()
    assert layout.nbytes < values.nbytes / 6


@pytest.mark.parametrize(("rows", "crossing"), [(1, 4), (3, 4), (4, 4), (33, 4), (7, None)])
@pytest.mark.parametrize("kind", ["int4", "int8"])
def test_both_paths_multiply_by_the_same_values(kind: str, rows: int, crossing: int | None) -> None:
    # Wider than one block of what is widened.
    outputs, inputs = 4096, 640
    scales = (torch.rand(outputs, inputs // 32) * 0.01).to(torch.bfloat16)
    added = torch.randn(outputs, inputs // 32).to(torch.bfloat16) * 0.01
    x = torch.randn(rows, inputs).to(torch.bfloat16)
    if kind == "int4":
        quants = torch.randint(0, 16, (outputs, inputs), dtype=torch.uint8)
        layout: Int4Linear | Int8Linear = Int4Linear(quants, scales=scales, zeros=added, crossing=crossing)
        integers = quants.float() - 8
    else:
        signed = torch.randint(-128, 128, (outputs, inputs), dtype=torch.int8)
        layout = Int8Linear(signed, scales=scales, offsets=added, crossing=crossing)
        integers = signed.float()
    values = integers * scales.float().repeat_interleave(32, 1) + added.float().repeat_interleave(32, 1)
    expected = x.float() @ values.T
    assert (layout(x).float() - expected).abs().max() < 0.02 * expected.abs().max()
    assert layout.rows_invariant == (crossing is None)


def test_joined_products_stand_side_by_side() -> None:
    first, second = Float32Linear(torch.randn(4, 8)), Float32Linear(torch.randn(3, 8))
    x = torch.randn(5, 8)
    both = Joined([first, second])
    assert torch.equal(both(x), torch.cat((first(x), second(x)), dim=1))
    assert (both.rows, both.columns, both.nbytes) == (7, 8, first.nbytes + second.nbytes)


@pytest.mark.parametrize(("outputs", "inputs"), [(576, 1536), (960, 576), (96, 64)])
@pytest.mark.parametrize("kind", ["bfloat16", "int4", "int8"])
def test_a_row_does_not_depend_on_the_number_of_rows(outputs: int, inputs: int, kind: str) -> None:
    layout: Linear
    if kind == "int4":
        layout = int4(outputs, inputs)[0]
    elif kind == "int8":
        integers = torch.randint(-128, 128, (outputs, inputs), dtype=torch.int8)
        layout = Int8Linear(integers, scales=torch.rand(outputs, inputs // 16) * 0.01, crossing=None)
    else:
        layout = BFloat16Linear(torch.randn(outputs, inputs).to(torch.bfloat16) * 0.05)
    assert layout.rows_invariant
    for _ in range(30):
        x = torch.randn(40, inputs).to(torch.bfloat16)
        whole = layout(x)
        for rows in (1, 2, 3, 9, 17):
            assert torch.equal(layout(x[:rows].contiguous()), whole[:rows])
