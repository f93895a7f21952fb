"""Swap against recompute: how long an answer that was put aside takes to go on."""

from __future__ import annotations

import queue
import statistics
import time

from octavo_engine.api import Engine
from octavo_engine.bench.goal import Goal
from octavo_engine.bench.opening import OpenEngine
from octavo_engine.bench.report import PartResult, table
from octavo_engine.bench.scale import Scale
from octavo_engine.bench.trace import some_text
from octavo_engine.events import Delta, Event, Finished, Preempted
from octavo_engine.request import GenerationRequest, SamplingParams

_BEFORE = 4
_MARGIN_PAGES = 8


def measure(open_engine: OpenEngine, scale: Scale) -> PartResult:
    """Put an answer aside after its first tokens, bring it back, and take the time to its next token."""
    pages = -(-max(scale.swap_lengths) // 16) + _MARGIN_PAGES
    figures: dict[str, dict[str, float]] = {}
    with open_engine(host_pages=pages, kv_pages=2 * pages) as engine:
        for length in scale.swap_lengths:
            prompt = some_text(engine.tokenizer, length, seed=9)
            times = {}
            for way in ("swap", "recompute"):
                engine.configure(preemption=way)
                times[way] = statistics.median(_resume(engine, prompt) for _ in range(min(3, scale.repetitions)))
            figures[f"{length}"] = {"tokens": length, **times, "ratio": times["recompute"] / times["swap"]}
    rows = [
        (f"{int(each['tokens']):,} tokens", 1000 * each["swap"], 1000 * each["recompute"], each["ratio"])
        for each in figures.values()
    ]
    return PartResult(
        name="swap",
        about="From the wish to resume to the next token, nothing else running; medians.",
        figures=figures,
        tables=(table("Going on, ms", ("", "swap", "recompute", "recompute / swap"), rows),),
        goals=tuple(
            Goal(
                f"swap over recompute at {int(each['tokens']):,} tokens", each["swap"] / each["recompute"], "<", 1, "x"
            )
            for each in figures.values()
        ),
    )


def _resume(engine: Engine, prompt: tuple[int, ...]) -> float:
    """Seconds from `resume` to the next token of an answer that has been preempted."""
    engine.drop_cache()
    events: queue.SimpleQueue[tuple[float, Event]] = queue.SimpleQueue()
    sampling = SamplingParams(temperature=0.0, max_tokens=_BEFORE + 8, ignore_eos=True)
    handle = engine.submit(
        GenerationRequest(token_ids=prompt, sampling=sampling, owner="bench"),
        lambda event: events.put((time.monotonic(), event)),
    )
    _wait_for(events, Delta, _BEFORE)
    handle.pause()
    handle.swap_out()
    _wait_for(events, Preempted, 1)
    # The pages move with the next step, which another request makes.
    other = GenerationRequest(token_ids=prompt[:3], sampling=SamplingParams(max_tokens=1), owner="bench/other")
    engine.submit(other).result()
    asked = time.monotonic()
    handle.resume()
    resumed = _wait_for(events, Delta, 1)
    handle.result()
    return resumed - asked


def _wait_for(events: queue.SimpleQueue[tuple[float, Event]], kind: type[Event], count: int) -> float:
    """When the `count`-th event of a kind came; tokens that came before the pause took hold are passed over."""
    while True:
        at, event = events.get(timeout=60)
        assert not isinstance(event, Finished), "the answer ended before it was put aside"
        if isinstance(event, kind):
            count -= 1
            if not count:
                return at
