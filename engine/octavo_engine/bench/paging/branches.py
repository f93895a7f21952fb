"""Many branches of one history: the pages of one history and the branches' own tails."""

from __future__ import annotations

import contextlib
import time

from octavo_engine.bench.goal import Goal
from octavo_engine.bench.opening import OpenEngine
from octavo_engine.bench.report import PartResult, table
from octavo_engine.bench.scale import Scale
from octavo_engine.bench.trace import some_text
from octavo_engine.request import GenerationRequest, SamplingParams

_LOOK_SECONDS = 0.01


def measure(open_engine: OpenEngine, scale: Scale) -> PartResult:
    """Fork one answer, let all branches run together and count their pages just before they end."""
    with open_engine(max_running=scale.branches + 1) as engine:
        history = some_text(engine.tokenizer, scale.branch_history, seed=2)
        size = engine.config.page_size
        first = SamplingParams(temperature=0.0, max_tokens=1, ignore_eos=True)
        parent = engine.submit(GenerationRequest(token_ids=history, sampling=first, owner="bench/parent"))
        parent.result()
        sampling = SamplingParams(temperature=1.0, max_tokens=scale.branch_tokens, ignore_eos=True, seed=3)
        copies = engine.stats().copies_on_write
        begun = time.monotonic()
        branches = parent.fork(scale.branches, sampling=sampling, owner="bench/branch")
        pages, sharing = 0, 0.0
        while unfinished := [branch for branch in branches if not branch.done()]:
            stats = engine.stats()
            now = stats.pages["private"] + stats.pages["shared"]
            if now > pages:
                pages, sharing = now, stats.sharing
            with contextlib.suppress(TimeoutError):
                unfinished[0].result(_LOOK_SECONDS)
        seconds = time.monotonic() - begun
        copies = engine.stats().copies_on_write - copies
        engine.drop_cache()
    tail = -(-(len(history) + 1 + scale.branch_tokens) // size) - len(history) // size
    separate = scale.branches * -(-(len(history) + 1 + scale.branch_tokens) // size)
    allowed = len(history) // size + scale.branches * tail
    figures = {
        "history": len(history),
        "branches": scale.branches,
        "tokens_each": scale.branch_tokens,
        "pages": pages,
        "pages_of_one_history_and_tails": allowed,
        "pages_when_separate": separate,
        "sharing": sharing,
        "copies_on_write": copies,
        "tokens_per_second": scale.branches * scale.branch_tokens / seconds,
    }
    rows = [
        (f"{scale.branches} branches, measured", pages),
        ("one history and their own tails", allowed),
        ("as separate chats", separate),
    ]
    return PartResult(
        name="branches",
        about=f"{scale.branches} branches of {len(history):,} tokens of history, {scale.branch_tokens} tokens each; "
        f"{figures['tokens_per_second']:.0f} tokens/s in total, {copies} pages copied on write.",
        figures=figures,
        tables=(table("Pages in use", ("", "pages"), rows),),
        goals=(Goal("pages of the branches", pages, "<=", allowed, "pages"),),
    )
