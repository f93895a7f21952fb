"""Every compiled operation against its torch twin: odd shapes, rows that lie apart, outputs poisoned with NaN."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import octavo_kernels as kernels
from octavo_kernels import forced
from octavo_kernels.operations.gated_activation import Activation

DTYPES = [torch.float32, torch.bfloat16]
IDS = ["float32", "bfloat16"]


def close(ours: torch.Tensor, twin: torch.Tensor) -> bool:
    """Equal within the rounding of the dtype that they are kept in."""
    tolerance = 2e-5 if ours.dtype == torch.float32 else 1.6e-2
    scale = twin.float().abs().amax().clamp(min=1e-3)
    return bool(((ours.float() - twin.float()).abs() <= tolerance * scale).all())


def poisoned(*shape: int, dtype: torch.dtype) -> torch.Tensor:
    return torch.full(shape, torch.nan, dtype=dtype)


def test_the_compiled_kernels_are_what_runs() -> None:
    chosen = {backend.operation: backend.chosen for backend in kernels.backends("cpu")}
    assert set(chosen.values()) == {"numba"}
    with forced("torch", "rope"):
        (rope,) = (backend for backend in kernels.backends("cpu") if backend.operation == "rope")
        assert (rope.chosen, rope.declined[0].reason) == ("torch", "torch was asked for")
    assert {backend.chosen for backend in kernels.backends("cpu")} == {"numba"}


@pytest.mark.parametrize("dtype", DTYPES, ids=IDS)
@pytest.mark.parametrize(("tokens", "hidden"), [(1, 8), (3, 576), (70, 40)])
@pytest.mark.parametrize("adds", [True, False])
def test_rms_norm(dtype: torch.dtype, tokens: int, hidden: int, adds: bool) -> None:
    residual = torch.randn(tokens, hidden)
    update = torch.randn(tokens, hidden).to(dtype) if adds else None
    weight = torch.rand(hidden)
    results = []
    for implementation in ("numba", "torch"):
        stream, out = residual.clone(), poisoned(tokens, hidden, dtype=dtype)
        with forced(implementation, "rms_norm"):
            kernels.rms_norm(stream, update, weight=weight, epsilon=1e-5, out=out)
        results.append((stream, out))
    (stream, out), (twin_stream, twin_out) = results
    assert close(stream, twin_stream)
    assert close(out, twin_out)


@pytest.mark.parametrize("dtype", DTYPES, ids=IDS)
@pytest.mark.parametrize(("tokens", "width"), [(1, 16), (5, 1536), (130, 24)])
@pytest.mark.parametrize("activation", ["silu", "gelu_tanh"])
def test_gated_activation(dtype: torch.dtype, tokens: int, width: int, activation: Activation) -> None:
    gate_up = (torch.randn(tokens, 2 * width) * 4).to(dtype)
    results = []
    for implementation in ("numba", "torch"):
        out = poisoned(tokens, width, dtype=dtype)
        with forced(implementation, "gated_activation"):
            kernels.gated_activation(gate_up, out, activation=activation)
        results.append(out)
    assert close(*results)


@pytest.mark.parametrize("dtype", DTYPES, ids=IDS)
@pytest.mark.parametrize(("tokens", "heads", "size"), [(1, 3, 64), (9, 2, 40), (70, 1, 576)])
def test_head_norm_on_rows_that_lie_apart(dtype: torch.dtype, tokens: int, heads: int, size: int) -> None:
    fused = torch.randn(tokens, heads + 2, size).to(dtype)
    weight = torch.rand(size)
    results = []
    for implementation in ("numba", "torch"):
        mine = fused.clone()
        with forced(implementation, "head_norm"):
            kernels.head_norm(mine[:, 1 : heads + 1], weight=weight, epsilon=1e-6)
        assert torch.equal(mine[:, 0], fused[:, 0])
        assert torch.equal(mine[:, -1], fused[:, -1])
        results.append(mine)
    assert close(*results)


@pytest.mark.parametrize("dtype", DTYPES, ids=IDS)
@pytest.mark.parametrize("interleaved", [True, False])
@pytest.mark.parametrize("pairs", [16, 32])
def test_rope_on_rows_that_lie_apart(dtype: torch.dtype, interleaved: bool, pairs: int) -> None:
    tokens, heads, kv_heads, size = 7, 6, 2, 64
    fused = torch.randn(tokens, heads + kv_heads + kv_heads, size).to(dtype)
    angles = torch.rand(50, pairs) * 6
    results = []
    for implementation in ("numba", "torch"):
        mine = fused.clone()
        q, k, v = torch.split(mine, [heads, kv_heads, kv_heads], dim=1)
        with forced(implementation, "rope"):
            kernels.rope(
                q,
                k,
                cos=angles.cos(),
                sin=angles.sin(),
                positions=torch.tensor([0, 3, 49, 7, 7, 1, 20], dtype=torch.int32),
                interleaved=interleaved,
            )
        assert torch.equal(v, fused[:, heads + kv_heads :])
        results.append(mine)
    assert close(*results)


@st.composite
def ragged(draw: st.DrawFn) -> tuple[list[tuple[int, int]], int, int, int]:
    """Context and new tokens of each sequence; heads of a group, KV heads, size of a head."""
    lengths = st.integers(1, 70).flatmap(lambda context: st.tuples(st.just(context), st.integers(1, context)))
    sequences = draw(st.lists(lengths, min_size=1, max_size=5))
    return sequences, draw(st.sampled_from([1, 3, 4])), draw(st.integers(1, 3)), draw(st.sampled_from([8, 40, 64, 128]))


@settings(deadline=None, max_examples=60)
@given(ragged(), st.sampled_from(DTYPES), st.integers(0, 1000))
def test_paged_attention_and_write_kv(
    case: tuple[list[tuple[int, int]], int, int, int], dtype: torch.dtype, seed: int
) -> None:
    sequences, group, kv_heads, size = case
    generator = torch.Generator().manual_seed(seed)
    pages_of = [-(-context // 16) for context, _ in sequences]
    total = sum(pages_of) + 3
    order = torch.randperm(total, generator=generator).tolist()
    table = torch.full((len(sequences), max(pages_of)), -1, dtype=torch.int32)
    # What no sequence has written must never be read.
    pages = poisoned(2, total, kv_heads, 16, size, dtype=dtype)
    for row, count in enumerate(pages_of):
        table[row, :count] = torch.tensor([order.pop() for _ in range(count)])
    for row, (context, _) in enumerate(sequences):
        slots = torch.tensor([int(table[row, at // 16]) * 16 + at % 16 for at in range(context)])
        k, v = (torch.randn(context, kv_heads, size, generator=generator).to(dtype) for _ in range(2))
        with forced("numba" if row % 2 else "torch", "write_kv"):
            kernels.write_kv(k, v, kv_layer=pages, slots=slots)
        assert torch.equal(pages[0].transpose(1, 2).reshape(-1, kv_heads, size)[slots], k)
        assert torch.equal(pages[1].transpose(1, 2).reshape(-1, kv_heads, size)[slots], v)
    news = torch.tensor([0, *(new for _, new in sequences)], dtype=torch.int32)
    starts = news.cumsum(0).to(torch.int32)
    q = torch.randn(int(starts[-1]), group * kv_heads, size, generator=generator).to(dtype)
    lengths = torch.tensor([context for context, _ in sequences], dtype=torch.int32)
    results = []
    for implementation in ("numba", "torch"):
        out = poisoned(*q.shape, dtype=dtype)
        with forced(implementation, "paged_attention"):
            kernels.paged_attention(
                q,
                pages,
                page_table=table,
                query_starts=starts,
                context_lengths=lengths,
                scale=size**-0.5,
                out=out,
            )
        results.append(out)
    assert close(*results)


def test_a_row_of_attention_does_not_depend_on_how_many_there_are() -> None:
    context, heads, kv_heads, size = 200, 9, 3, 64
    pages = torch.randn(2, 13, kv_heads, 16, size).to(torch.bfloat16)
    table = torch.arange(13, dtype=torch.int32).unsqueeze(0)
    q = torch.randn(context, heads, size).to(torch.bfloat16)

    def attend(first: int, last: int) -> torch.Tensor:
        out = poisoned(last - first, heads, size, dtype=torch.bfloat16)
        kernels.paged_attention(
            q[first:last].contiguous(),
            pages,
            page_table=table,
            query_starts=torch.tensor([0, last - first], dtype=torch.int32),
            context_lengths=torch.tensor([last], dtype=torch.int32),
            scale=size**-0.5,
            out=out,
        )
        return out

    whole = attend(0, context)
    for first, last in ((0, 1), (15, 16), (16, 17), (100, 131), (199, 200), (37, 200)):
        assert torch.equal(attend(first, last), whole[first:last])
