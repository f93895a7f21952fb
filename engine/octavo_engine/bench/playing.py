"""Plays traces on an engine: continuously, as it is meant, and in static batches, for comparison."""

from __future__ import annotations

import math
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from octavo_engine.api import Engine, Handle
from octavo_engine.bench.trace import Job
from octavo_engine.events import Event, Failed, Finished

Watch = Callable[[], None]
_WATCH_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a job fared. Seconds: from its arrival to its end, to its first token, and between its tokens."""

    job: Job
    latency: float
    ttft: float
    tpot: float | None


@dataclass(frozen=True, slots=True)
class Played:
    """A whole trace; `seconds` from the first arrival to the last end."""

    outcomes: tuple[Outcome, ...]
    seconds: float

    @property
    def tokens_per_second(self) -> float:
        """Tokens that were asked for, by the second."""
        return sum(outcome.job.output for outcome in self.outcomes) / self.seconds

    @property
    def latencies(self) -> list[float]:
        """Seconds from arrival to end."""
        return [outcome.latency for outcome in self.outcomes]

    @property
    def mean_tpot(self) -> float:
        """Mean seconds per token."""
        return statistics.fmean(outcome.tpot for outcome in self.outcomes if outcome.tpot is not None)


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that `share` of all values do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def play(engine: Engine, jobs: Sequence[Job], watch: Watch = lambda: None) -> Played:
    """Submit each job when it arrives; `watch` is called twenty times a second while something runs."""
    engine.drop_cache()
    begun = time.monotonic()
    waiting = sorted(jobs, key=lambda job: job.arrival)
    handles: list[tuple[Job, Handle]] = []
    has_ended = threading.Event()

    def note(event: Event) -> None:
        if isinstance(event, Finished | Failed):
            has_ended.set()

    while waiting or not all(handle.done() for _, handle in handles):
        now = time.monotonic() - begun
        while waiting and waiting[0].arrival <= now:
            job = waiting.pop(0)
            handles.append((job, engine.submit(job.request(), note)))
        watch()
        has_ended.wait(min([_WATCH_SECONDS, *(max(0.001, job.arrival - now) for job in waiting[:1])]))
        has_ended.clear()
    ended = time.monotonic()
    outcomes = []
    for job, handle in handles:
        timings = handle.result().timings
        outcomes.append(Outcome(job, timings.total, timings.ttft or timings.total, timings.tpot))
    return Played(tuple(outcomes), ended - begun)


def play_static(engine: Engine, jobs: Sequence[Job], *, batch: int, is_padded: bool) -> Played:
    """Serve the jobs in batches of those that have come, at most `batch`; nobody joins before a batch has ended.

    Padded, as a batch of tensors is: every row is computed until the longest has ended, and all answers are given back
    then (the "request-level scheduling" of Yu et al., Orca, OSDI 2022). Otherwise a row leaves, with its answer, when
    it has ended.
    """
    engine.drop_cache()
    begun = time.monotonic()
    waiting = sorted(jobs, key=lambda job: job.arrival)
    outcomes = []
    while waiting:
        time.sleep(max(0.0, waiting[0].arrival - (time.monotonic() - begun)))
        now = time.monotonic() - begun
        group = [job for job in waiting[:batch] if job.arrival <= now]
        waiting = waiting[len(group) :]
        longest = max(job.output for job in group)
        engine.pause()
        started = time.monotonic() - begun
        handles = [engine.submit(job.request(output=longest if is_padded else None)) for job in group]
        engine.resume()
        timings = [handle.result().timings for handle in handles]
        ended = time.monotonic() - begun
        for job, times in zip(group, timings, strict=True):
            end = ended if is_padded else started + times.total
            first = started + (times.ttft or times.total)
            outcomes.append(Outcome(job, end - job.arrival, first - job.arrival, times.tpot))
    return Played(tuple(outcomes), time.monotonic() - begun)
