"""The scheduling policies on one trace above capacity."""

from __future__ import annotations

import random
import statistics
from dataclasses import replace

from octavo_engine.bench.goal import Goal
from octavo_engine.bench.opening import OpenEngine
from octavo_engine.bench.playing import Played, percentile, play
from octavo_engine.bench.report import PartResult, table
from octavo_engine.bench.scale import Scale
from octavo_engine.bench.trace import at_rate, make_trace
from octavo_engine.request import Priority

_RUNNING = 8
_LOAD = 2.0
_PROMPTS = (16, 256)
_POLICIES = ("fcfs", "sjf", "priority")


def measure(open_engine: OpenEngine, scale: Scale) -> PartResult:
    """Play the trace under each policy; every third request is interactive, whatever its length."""
    with open_engine(max_running=_RUNNING) as engine:
        engine.configure(policy="fcfs")
        jobs = make_trace(
            engine.tokenizer, scale.policy_requests, prompts=_PROMPTS, outputs=scale.policy_outputs, seed=6
        )
        draw = random.Random(7)
        kinds = [(Priority.INTERACTIVE, Priority.NORMAL, Priority.BACKGROUND)[index % 3] for index in range(len(jobs))]
        draw.shuffle(kinds)
        jobs = tuple(replace(job, priority=kind) for job, kind in zip(jobs, kinds, strict=True))
        timed = at_rate(jobs, _LOAD * len(jobs) / play(engine, jobs).seconds, seed=8)
        played = {}
        for policy in _POLICIES:
            engine.configure(policy=policy)
            played[policy] = play(engine, timed)
    figures = {policy: _figures(each) for policy, each in played.items()}
    interactive = {policy: figures[policy]["interactive_p99"] for policy in _POLICIES}
    rows = [(policy, *figures[policy].values()) for policy in _POLICIES]
    return PartResult(
        name="policies",
        about=f"{len(jobs)} requests at {_LOAD:g} x capacity, {_RUNNING} at once, a third of them interactive; "
        "max_tokens is the expected length.",
        figures=figures,
        tables=(table("Latency, s", ("", "mean", "p99", "interactive mean", "interactive p99", "tokens/s"), rows),),
        goals=(
            Goal("mean latency, SJF over FCFS", figures["sjf"]["mean"] / figures["fcfs"]["mean"], "<", 1.0, "x"),
            Goal(
                "interactive p99, priority over the better of the others",
                interactive["priority"] / min(interactive["fcfs"], interactive["sjf"]),
                "<",
                1.0,
                "x",
            ),
        ),
    )


def _figures(played: Played) -> dict[str, float]:
    interactive = [each.latency for each in played.outcomes if each.job.priority is Priority.INTERACTIVE]
    return {
        "mean": statistics.fmean(played.latencies),
        "p99": percentile(played.latencies, 0.99),
        "interactive_mean": statistics.fmean(interactive),
        "interactive_p99": percentile(interactive, 0.99),
        "tokens_per_second": played.tokens_per_second,
    }
