"""Windows and soft-capped scores against the torch twin; what lies outside a window is never felt, nor is company."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import octavo_kernels as kernels
from octavo_kernels import forced

PAGE = 16
DTYPES = [torch.float32, torch.bfloat16]


@dataclass
class Case:
    """Sequences over pages that hold NaN wherever nobody may look."""

    q: torch.Tensor
    pages: torch.Tensor
    table: torch.Tensor
    starts: torch.Tensor
    lengths: torch.Tensor

    def attend(self, window: int, cap: float) -> torch.Tensor:
        out = torch.full_like(self.q, torch.nan)
        kernels.paged_attention(
            self.q,
            self.pages,
            page_table=self.table,
            query_starts=self.starts,
            context_lengths=self.lengths,
            scale=self.q.shape[2] ** -0.5,
            out=out,
            window=window,
            softcap=cap,
        )
        return out


def make(
    sequences: list[tuple[int, int]],
    *,
    group: int,
    kv_heads: int,
    size: int,
    dtype: torch.dtype,
    window: int,
    seed: int,
) -> Case:
    """Sequences of (context, new tokens); what no new token of a sequence sees is NaN."""
    generator = torch.Generator().manual_seed(seed)
    counts = [-(-context // PAGE) for context, _ in sequences]
    order = torch.randperm(sum(counts), generator=generator).tolist()
    table = torch.zeros(len(sequences), max(counts), dtype=torch.int32)
    pages = torch.randn(2, len(order), kv_heads, PAGE, size, generator=generator).to(dtype)
    for row, (context, new) in enumerate(sequences):
        table[row, : counts[row]] = torch.tensor([order.pop() for _ in range(counts[row])])
        lowest = max(0, context - new - window + 1) if window else 0
        for at in [*range(lowest), *range(context, counts[row] * PAGE)]:
            pages[:, table[row, at // PAGE], :, at % PAGE] = torch.nan
    news = torch.tensor([0, *(new for _, new in sequences)])
    starts = news.cumsum(0).to(torch.int32)
    q = torch.randn(int(starts[-1]), group * kv_heads, size, generator=generator).to(dtype)
    return Case(q, pages, table, starts, torch.tensor([context for context, _ in sequences], dtype=torch.int32))


def check(case: Case, window: int, cap: float) -> None:
    ours = case.attend(window, cap)
    # The twin multiplies what it hides by 0.
    case.pages.nan_to_num_(0.0)
    with forced("torch", "paged_attention"):
        theirs = case.attend(window, cap)
    tolerance = 2e-5 if ours.dtype == torch.float32 else 1.6e-2
    assert ((ours.float() - theirs.float()).abs() <= tolerance * theirs.float().abs().amax()).all()


@st.composite
def ragged(draw: st.DrawFn) -> tuple[list[tuple[int, int]], int, int, int]:
    lengths = st.integers(1, 90).flatmap(lambda context: st.tuples(st.just(context), st.integers(1, context)))
    sequences = draw(st.lists(lengths, min_size=1, max_size=4))
    return sequences, draw(st.sampled_from([1, 2, 3, 9])), draw(st.integers(1, 2)), draw(st.sampled_from([8, 40, 64]))


@settings(deadline=None, max_examples=80)
@given(
    ragged(),
    st.sampled_from(DTYPES),
    st.sampled_from([0, 1, 2, 15, 16, 17, 31, 32, 33, 89, 90, 91]),
    st.sampled_from([0.0, 0.5, 30.0]),
    st.integers(0, 1000),
)
def test_any_window_and_cap(
    shape: tuple[list[tuple[int, int]], int, int, int], dtype: torch.dtype, window: int, cap: float, seed: int
) -> None:
    sequences, group, kv_heads, size = shape
    check(
        make(sequences, group=group, kv_heads=kv_heads, size=size, dtype=dtype, window=window, seed=seed), window, cap
    )


@pytest.mark.parametrize("dtype", DTYPES, ids=["float32", "bfloat16"])
@pytest.mark.parametrize("size", [16, 80, 96, 128, 256])
@pytest.mark.parametrize("group", [1, 4, 7])
def test_heads_of_all_sizes(dtype: torch.dtype, size: int, group: int) -> None:
    case = make([(70, 70), (40, 1)], group=group, kv_heads=1, size=size, dtype=dtype, window=33, seed=size)
    check(case, 33, 50.0)


@pytest.mark.parametrize("dtype", DTYPES, ids=["float32", "bfloat16"])
@pytest.mark.parametrize(("window", "cap"), [(1, 0.0), (16, 0.0), (17, 30.0), (40, 0.0), (0, 30.0)])
def test_a_row_does_not_depend_on_its_company_or_chunk(dtype: torch.dtype, window: int, cap: float) -> None:
    context = 75
    whole = make([(context, context)], group=3, kv_heads=2, size=64, dtype=dtype, window=0, seed=1)
    expected = whole.attend(window, cap)
    for chunk in (1, 3, 16, 20):
        for start in range(0, context, chunk):
            stop = min(context, start + chunk)
            part = Case(
                whole.q[start:stop].contiguous(),
                whole.pages,
                whole.table,
                torch.tensor([0, stop - start], dtype=torch.int32),
                torch.tensor([stop], dtype=torch.int32),
            )
            assert torch.equal(part.attend(window, cap), expected[start:stop]), (chunk, start)


def test_a_cap_holds_large_and_tiny_scores() -> None:
    case = make([(30, 1)], group=1, kv_heads=1, size=8, dtype=torch.float32, window=0, seed=3)
    for factor in (1e-6, 1e3, 1e6):
        scaled = Case(case.q * factor, case.pages.nan_to_num(0.0), case.table, case.starts, case.lengths)
        check(scaled, 0, 5.0)
