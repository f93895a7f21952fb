"""Continuous against static batching: one engine, one trace, several offered loads."""

from __future__ import annotations

import statistics

from octavo_engine.bench.goal import Goal
from octavo_engine.bench.opening import OpenEngine
from octavo_engine.bench.playing import Played, percentile, play, play_static
from octavo_engine.bench.report import PartResult, table
from octavo_engine.bench.scale import Scale
from octavo_engine.bench.trace import at_rate, make_trace

_BATCH = 8
_PROMPTS = (16, 256)
# Ratios on a processor, from the goals of the project.
_THROUGHPUT = 1.6
_TPOT = 1.4


def measure(open_engine: OpenEngine, scale: Scale) -> PartResult:
    """Find the capacity with everything arriving at once, then play Poisson arrivals below and above it."""
    goals: list[Goal] = []
    rows = []
    loads = {}
    with open_engine(max_running=_BATCH, policy="fcfs") as engine:
        jobs = make_trace(
            engine.tokenizer, scale.batching_requests, prompts=_PROMPTS, outputs=scale.batching_outputs, seed=4
        )
        capacity = len(jobs) / play(engine, jobs).seconds
        for load in scale.loads:
            timed = at_rate(jobs, load * capacity, seed=5)
            played = {
                "continuous": play(engine, timed),
                "static, padded": play_static(engine, timed, batch=_BATCH, is_padded=True),
                "static, unpadded": play_static(engine, timed, batch=_BATCH, is_padded=False),
            }
            loads[f"{load:g}"] = {name: _figures(each) for name, each in played.items()}
            rows += [(f"{load:g} x capacity, {name}", *_row(each)) for name, each in played.items()]
            goals += _goals(load, played["continuous"], played["static, padded"])
    lengths = [job.output for job in jobs]
    return PartResult(
        name="batching",
        about=f"{len(jobs)} requests, prompts of {_PROMPTS[0]}-{_PROMPTS[1]} tokens, answers of {min(lengths)}-"
        f"{max(lengths)} ({statistics.fmean(lengths):.0f} in the mean), {_BATCH} at once, Poisson arrivals; "
        f"capacity {capacity:.2f} requests/s.",
        figures={"requests": len(jobs), "batch": _BATCH, "capacity": capacity, "loads": loads},
        tables=(table("Batching", ("", "tokens/s", "mean latency s", "p99 s", "TPOT ms"), rows),),
        goals=tuple(goals),
    )


def _figures(played: Played) -> dict[str, float]:
    return {
        "tokens_per_second": played.tokens_per_second,
        "latency_mean": statistics.fmean(played.latencies),
        "latency_p99": percentile(played.latencies, 0.99),
        "tpot": played.mean_tpot,
        "seconds": played.seconds,
    }


def _row(played: Played) -> tuple[float, ...]:
    figures = _figures(played)
    return (
        figures["tokens_per_second"],
        figures["latency_mean"],
        figures["latency_p99"],
        1000 * figures["tpot"],
    )


def _goals(load: float, continuous: Played, static: Played) -> list[Goal]:
    at = f"at {load:g} x capacity"
    latency = statistics.fmean(continuous.latencies) / statistics.fmean(static.latencies)
    goals = [
        Goal(f"mean latency, continuous over static, {at}", latency, "<", 1.0, "x"),
        Goal(f"TPOT, continuous over static, {at}", continuous.mean_tpot / static.mean_tpot, "<=", _TPOT, "x"),
    ]
    if load > 1:
        ratio = continuous.tokens_per_second / static.tokens_per_second
        goals.insert(0, Goal(f"tokens/s, continuous over static, {at}", ratio, ">=", _THROUGHPUT, "x"))
    return goals
