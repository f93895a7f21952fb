"""Slots of pages that hold nothing, beside what reserving whole lengths would leave empty on the same trace."""

from __future__ import annotations

import statistics

from octavo_engine.bench.goal import Goal
from octavo_engine.bench.opening import OpenEngine
from octavo_engine.bench.playing import play
from octavo_engine.bench.report import PartResult, table
from octavo_engine.bench.scale import Scale
from octavo_engine.bench.trace import make_trace

_RUNNING = 16


def measure(open_engine: OpenEngine, scale: Scale) -> PartResult:
    """Play a trace of mixed lengths and look at the pages twenty times a second."""
    with open_engine(max_running=_RUNNING, policy="fcfs") as engine:
        jobs = make_trace(
            engine.tokenizer, scale.waste_requests, prompts=scale.waste_prompts, outputs=scale.waste_outputs, seed=1
        )
        waste: list[float] = []
        filled: list[tuple[int, int]] = []

        def look() -> None:
            stats = engine.stats()
            lengths = [info.computed_tokens for info in engine.sequences() if info.state in ("prefill", "running")]
            if stats.pages["private"] + stats.pages["shared"] and lengths:
                waste.append(stats.waste)
                filled.append((sum(lengths), len(lengths)))

        played = play(engine, jobs, look)
        context = engine.info.context_length
    longest = scale.waste_prompts[1] + scale.waste_outputs[1]
    mean = statistics.fmean(job.length for job in jobs)

    def used(reserved: int) -> float:
        return statistics.fmean(tokens / (count * reserved) for tokens, count in filled)

    figures = {
        "requests": len(jobs),
        "mean_length": mean,
        "running_at_most": _RUNNING,
        "looks": len(waste),
        "waste": statistics.fmean(waste),
        "waste_worst": max(waste),
        "used_with_pages": 1 - statistics.fmean(waste),
        "used_when_longest_is_reserved": used(longest),
        "used_when_context_is_reserved": used(context),
        "longest": longest,
        "context": context,
        "tokens_per_second": played.tokens_per_second,
    }
    rows = [
        ("pages of 16 tokens", 100 * figures["used_with_pages"], 100 * figures["waste"]),
        (f"the longest request reserved ({longest:,})", 100 * used(longest), 100 * (1 - used(longest))),
        (f"the whole context reserved ({context:,})", 100 * used(context), 100 * (1 - used(context))),
    ]
    return PartResult(
        name="waste",
        about=f"{len(jobs)} requests of {mean:.0f} tokens in the mean (prompt and answer), at most {_RUNNING} at once; "
        f"means of {len(waste)} looks over the run. Literature for reserving: 20-38 % used (Kwon et al. 2023).",
        figures=figures,
        tables=(table("Slots of the KV cache", ("", "used %", "wasted %"), rows),),
        goals=(
            Goal("KV waste", figures["waste"], "<", 0.04),
            *([Goal("mean length", mean, ">=", 400, "tokens")] if scale.name == "full" else []),
        ),
    )
