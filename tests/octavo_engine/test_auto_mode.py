"""With batch_invariant="auto" the kernels may differ by row count: how far answers are apart, and what stays exact.

The figures go to `auto-mode.json` in the folder that OCTAVO_REPORT names, if it does.
"""

import itertools
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from octavo_engine import Delta, EngineConfig, Event, GenerationRequest, Preempted, SamplingParams
from octavo_engine.kv_pages import KvPages
from octavo_engine.local_engine import LocalEngine
from octavo_engine.models.decoder import Decoder
from octavo_engine.models.files.gguf_header import read_header
from octavo_engine.page_move import MoveKind, PageMove
from octavo_engine.tokenization.gguf_tokenizer import GgufTokenizer
from octavo_kernels.weights.int4 import CROSSING
from ragged import batch, stale_pages
from tiny_decoder import decoder_of

LENGTH = 48
PAGES = LENGTH // 16
# More rows than the 4-bit layout is used for, so that company changes the kernel.
COMPANY = CROSSING + 2
# The texts that are compared; the others are company.
SHOWN = 6


@pytest.fixture(scope="module")
def decoder(starter_model: Path) -> Decoder:
    return decoder_of(starter_model)


@pytest.fixture(scope="module")
def texts(starter_model: Path) -> list[list[int]]:
    """Pieces of English, of one length."""
    page = Path(__file__).parents[2].joinpath("docs", "architecture.md").read_text()
    tokens = GgufTokenizer(read_header(starter_model).metadata).encode(page)
    pieces = [tokens[start : start + LENGTH] for start in range(0, COMPANY * LENGTH, LENGTH)]
    assert {len(piece) for piece in pieces} == {LENGTH}
    return pieces


def together(decoder: Decoder, rows: list[list[int]]) -> torch.Tensor:
    """Logits [rows, positions, vocabulary] when the rows decode together, a token at a time."""
    pages = stale_pages(decoder, PAGES * len(rows))
    tables = [list(range(row * PAGES, (row + 1) * PAGES)) for row in range(len(rows))]
    steps = [
        decoder.forward(batch([(row[: end + 1], end, table) for row, table in zip(rows, tables, strict=True)]), pages)
        for end in range(LENGTH)
    ]
    return torch.stack(steps, dim=1)


def in_pieces(decoder: Decoder, rows: list[list[int]], ends: list[int]) -> torch.Tensor:
    """Logits [rows, positions, vocabulary] when each row is computed alone, in pieces that end at `ends`."""
    whole = []
    for row in rows:
        pages = stale_pages(decoder, PAGES)
        pieces = [
            decoder.forward(batch([(row[:end], start, list(range(PAGES)))], every=True), pages)
            for start, end in itertools.pairwise([0, *ends])
        ]
        whole.append(torch.cat(pieces))
    return torch.stack(whole)


def compare(plain: torch.Tensor, other: torch.Tensor) -> dict[str, float]:
    """Mean KL of the next-token distributions, and the share of positions whose most likely token changes."""
    expected, got = plain.log_softmax(-1), other.log_softmax(-1)
    return {
        "kl": float((expected.exp() * (expected - got)).sum(-1).mean()),
        "changed": float((plain.argmax(-1) != other.argmax(-1)).float().mean()),
    }


def test_how_far_answers_differ_by_company_chunk_cache_and_fork(decoder: Decoder, texts: list[list[int]]) -> None:
    together_with_all = together(decoder, texts)[:SHOWN]
    texts = texts[:SHOWN]
    whole = in_pieces(decoder, texts, [LENGTH])
    alone = in_pieces(decoder, texts, list(range(1, LENGTH + 1)))
    cached, kept = LENGTH - CROSSING // 2, LENGTH - 20
    # A fork goes on from pages that its parent wrote while it decoded; a resubmission reads the same text as a prompt.
    forked = in_pieces(decoder, texts, list(range(kept, LENGTH + 1)))[:, -12:]
    resubmitted = in_pieces(decoder, texts, list(range(LENGTH - 12, LENGTH + 1)))[:, -12:]
    figures = {
        f"batched: {COMPANY} together, against alone": compare(alone, together_with_all),
        "decoded: a token at a time, against the prompt at once": compare(whole, alone),
        "chunked: 24 tokens each, against the prompt at once": compare(
            whole, in_pieces(decoder, texts, list(range(24, LENGTH + 1, 24)))
        ),
        "chunked: 6 tokens each, against the prompt at once": compare(
            whole, in_pieces(decoder, texts, [*range(6, LENGTH, 6), LENGTH])
        ),
        "cached: all but the last few tokens, against cold": compare(
            whole[:, cached:], in_pieces(decoder, texts, [cached, LENGTH])[:, cached:]
        ),
        "forked: against resubmitted": compare(resubmitted, forked),
    }
    folder = os.environ.get("OCTAVO_REPORT")
    if folder:
        Path(folder, "auto-mode.json").write_text(json.dumps(figures, indent=2))
    for name, figure in figures.items():
        assert -1e-6 < figure["kl"] < 0.01, name
        assert figure["changed"] < 0.1, name
    # Rows of one layout do not differ at all; those of two do, or nothing was measured.
    exact = "chunked: 24 tokens each, against the prompt at once"
    assert figures[exact] == {"kl": 0.0, "changed": 0.0}
    assert all(figure["kl"] > 0 for name, figure in figures.items() if name != exact)


def test_pages_come_back_from_the_host_byte_for_byte() -> None:
    shape = (3, 2, 8, 2, 16, 32)
    device, host = (torch.randn(shape).to(torch.bfloat16) for _ in range(2))
    pages = KvPages(device, host)
    before = [pages.read(page, on_host=False) for page in range(8)]
    out = [(0, 5), (3, 2), (7, 0)]
    pages.move([PageMove(MoveKind.OUT, source, target) for source, target in out])
    pages.move([PageMove(MoveKind.COPY, 1, source) for source, _ in out])
    assert [pages.read(target, on_host=True) for _, target in out] == [before[source] for source, _ in out]
    pages.move(
        [PageMove(MoveKind.IN, host_page, target) for (_, host_page), target in zip(out, (4, 0, 6), strict=True)]
    )
    assert [pages.read(page, on_host=False) for page in (4, 0, 6)] == [before[source] for source, _ in out]


@pytest.fixture(scope="module")
def engine(starter_model: Path) -> Iterator[LocalEngine]:
    engine = LocalEngine.open(starter_model, EngineConfig(kv_pages=64, host_pages=32))
    yield engine
    engine.close()


def test_a_swapped_answer_finds_its_own_bytes_again(engine: LocalEngine) -> None:
    device = engine._runner._pages.device  # type: ignore[attr-defined]
    seen: list[torch.Tensor] = []

    def note(event: Event) -> None:
        """Take what is written before and after the answer has been away."""
        if isinstance(event, Delta):
            sequence = handle.sequence
            assert sequence is not None
            # Keys and values as layers, 2, kv_heads, positions, head_dim.
            held = device[:, :, sequence.table.pages].transpose(2, 3).flatten(3, 4)
            seen.append(held[:, :, :, : sequence.computed].clone())
            if len(seen) == 5:
                handle.pause()
                handle.swap_out()

    engine.drop_cache()
    engine.pause()
    prompt = "The history of books began long before paper, and it has not ended yet. " * 3
    handle = engine.submit(GenerationRequest(prompt=prompt, sampling=SamplingParams(temperature=0, max_tokens=8)), note)
    engine.resume()
    next(event for event in handle.events(30) if isinstance(event, Preempted))
    # Nothing of the answer is left on the device once the step that moved its pages is over.
    engine.pause()
    device.fill_(torch.nan)
    assert engine.stats().pages["cached"] == 0, "nobody may find the spoilt pages"
    engine.resume()
    handle.resume()
    handle.result(30)
    away, back = seen[4], seen[5][:, :, :, : seen[4].shape[3]]
    assert away.shape[3] > 40
    assert away.shape[3] % 16, "a page that is partly filled is among them"
    assert torch.equal(away.view(torch.int16), back.contiguous().view(torch.int16))


def test_a_swapped_answer_is_exact(engine: LocalEngine) -> None:
    request = GenerationRequest(
        prompt="The history of books began", sampling=SamplingParams(temperature=0, max_tokens=40, ignore_eos=True)
    )
    before = engine.stats()
    engine.drop_cache()
    plain = engine.submit(request).result(60).token_ids
    engine.drop_cache()
    handle = engine.submit(request)
    events = handle.events(30)
    for _ in range(3):
        for _ in range(5):
            next(event for event in events if isinstance(event, Delta))
        handle.swap_out()
        next(event for event in events if isinstance(event, Preempted))
    assert handle.result(60).token_ids == plain
    stats = engine.stats()
    assert stats.swaps > before.swaps
    assert stats.recomputes == before.recomputes
