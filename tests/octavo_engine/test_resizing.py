"""Pools grow and shrink while answers run: nobody's answer changes, and memory is given back."""

import gc
from pathlib import Path

import psutil
import pytest

from octavo_engine import (
    Delta,
    Engine,
    EngineConfig,
    FakeEngine,
    GenerationRequest,
    Handle,
    InvalidRequest,
    OutOfMemory,
    SamplingParams,
)


def ask(prompt: str, tokens: int = 60) -> GenerationRequest:
    return GenerationRequest(
        prompt=prompt, sampling=SamplingParams(temperature=0, max_tokens=tokens, ignore_eos=True), owner=prompt
    )


def begun(handle: Handle) -> Handle:
    next(event for event in handle.events(30) if isinstance(event, Delta))
    return handle


def test_answers_go_on_alike_while_the_pools_change(starter_model: Path) -> None:
    engine = Engine.open(starter_model, EngineConfig(batch_invariant=True, kv_pages=64))
    prompts = [f"{word} is a word that means" for word in ("Paper", "Book", "Octavo", "Print")]
    alone = [engine.submit(ask(prompt)).result(60).token_ids for prompt in prompts]
    engine.drop_cache()
    handles = [begun(engine.submit(ask(prompt))) for prompt in prompts]
    sizes = [(200, 32), (14, 64), (9, 64), (100, 0), (40, 16)]
    for pages, host_pages in sizes:
        engine.configure(kv_pages=pages, host_pages=host_pages)
        begun(handles[0]) if not handles[0].done() else None
    assert [handle.result(60).token_ids for handle in handles] == alone
    assert engine.check_integrity().ok
    assert sum(engine.stats().pages[state] for state in ("free", "private", "shared", "cached")) == 40
    assert len(engine.page_map()) == 40 + 16
    assert engine.capabilities >= {"swap"}
    engine.close()


def test_a_smaller_pool_gives_memory_back(starter_model: Path) -> None:
    engine = Engine.open(starter_model, EngineConfig(kv_pages=200))
    engine.submit(ask("The history of paper. " * 400, 2)).result(60)
    gc.collect()
    process = psutil.Process()
    full = process.memory_info().rss
    engine.configure(kv_pages=16)
    engine.submit(ask("And now?", 2)).result(60)
    gc.collect()
    # More than half of the 125 pages of 360 KiB that were in use.
    assert full - process.memory_info().rss > 25 << 20
    assert engine.stats().pages["cached"] <= 16
    engine.close()


def test_a_prompt_that_no_longer_fits_ends_with_a_reason() -> None:
    engine = FakeEngine(script="x" * 4000, tokens_per_second=2000, pages=64)
    long = begun(engine.submit(ask("p" * 500, 400)))
    engine.configure(kv_pages=8)
    assert long.result(10).reason == "memory"
    assert engine.submit(ask("q", 10)).result(10).text == "x" * 10
    assert engine.check_integrity().ok
    engine.close()


def test_what_does_not_fit_into_memory_is_refused_with_the_numbers(starter_model: Path) -> None:
    engine = Engine.open(starter_model, EngineConfig(kv_pages=16))
    with pytest.raises(OutOfMemory) as caught:
        engine.configure(kv_pages=1 << 24)
    assert caught.value.needed is not None
    assert caught.value.available is not None
    assert caught.value.needed > caught.value.available > 0
    with pytest.raises(InvalidRequest, match="kv_pages"):
        engine.configure(kv_pages=0)
    assert engine.config.kv_pages == 16
    assert len(engine.page_map()) == 16
    engine.close()


def test_a_pool_can_shrink_where_memory_is_short(starter_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine.open(starter_model, EngineConfig(kv_pages=100))
    engine.submit(ask("The history of paper. " * 200, 2)).result(60)
    cached = engine.stats().pages["cached"]
    assert cached > 40
    # Memory for ten pages: the cache cannot be in it twice, so most of it goes.
    free = 10 * 2 * 30 * 3 * 16 * 64 * 2
    monkeypatch.setattr("octavo_engine.local_engine.free_memory", lambda: free)
    monkeypatch.setattr("octavo_engine.engine_loop.free_memory", lambda: free)
    with pytest.raises(OutOfMemory):
        engine.configure(kv_pages=200)
    engine.configure(kv_pages=90)
    engine.submit(ask("And now?", 2)).result(60)
    assert len(engine.page_map()) == 90
    assert engine.stats().pages["cached"] <= 12
    assert engine.check_integrity().ok
    engine.close()
