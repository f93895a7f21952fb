"""Weight layouts multiply by the matrix that they were made from, each row on its own."""

import pytest
import torch

from octavo_kernels.weights import BFloat16Linear, ByRows, Float32Linear, Int4Linear


def int4(rows: int, columns: int) -> tuple[Int4Linear, torch.Tensor]:
    """A packed matrix and its values."""
    quants = torch.randint(0, 16, (rows, columns), dtype=torch.uint8)
    scales = (torch.rand(rows, columns // 32) * 0.1).to(torch.bfloat16)
    zeros = torch.randn(rows, columns // 32).to(torch.bfloat16) * 0.1
    values = (quants.float() - 8) * scales.float().repeat_interleave(32, 1) + zeros.float().repeat_interleave(32, 1)
    return Int4Linear(quants, scales=scales, zeros=zeros), values


@pytest.mark.parametrize("rows", [1, 2, 7, 33])
def test_int4_multiplies_by_its_values(rows: int) -> None:
    layout, values = int4(64, 96)
    x = torch.randn(rows, 96).to(torch.bfloat16)
    expected = x.float() @ values.T
    assert (layout(x).float() - expected).abs().max() < 0.02 * expected.abs().max()
    assert layout.nbytes < values.nbytes / 6


@pytest.mark.parametrize(("outputs", "inputs"), [(576, 1536), (960, 576), (96, 64)])
@pytest.mark.parametrize("kind", ["bfloat16", "int4"])
def test_a_row_does_not_depend_on_the_number_of_rows(outputs: int, inputs: int, kind: str) -> None:
    if kind == "int4":
        layout: Int4Linear | BFloat16Linear = int4(outputs, inputs)[0]
    else:
        layout = BFloat16Linear(torch.randn(outputs, inputs).to(torch.bfloat16) * 0.05)
    assert layout.rows_invariant
    for _ in range(30):
        x = torch.randn(40, inputs).to(torch.bfloat16)
        whole = layout(x)
        for rows in (1, 2, 3, 9, 17):
            assert torch.equal(layout(x[:rows].contiguous()), whole[:rows])


def test_by_rows_changes_over_at_its_crossing() -> None:
    few, many = Float32Linear(torch.ones(4, 8)), Float32Linear(torch.ones(4, 8) * 2)
    both = ByRows(few, many, crossing=3)
    assert float(both(torch.ones(3, 8))[0, 0]) == 8
    assert float(both(torch.ones(4, 8))[0, 0]) == 16
    assert both.nbytes == few.nbytes + many.nbytes
    assert not both.rows_invariant
