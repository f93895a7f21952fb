"""Traces, statistics and goals of the benchmarks, and static batching on a scripted engine."""

import itertools
import random
import statistics
from collections.abc import Iterator

import pytest

from octavo_engine import FakeEngine, InvalidRequest, run_bench
from octavo_engine.bench.goal import Goal
from octavo_engine.bench.playing import percentile, play, play_static
from octavo_engine.bench.report import BenchReport, PartResult, table
from octavo_engine.bench.trace import Job, at_rate, log_uniform, make_trace
from octavo_engine.tokenization.byte_tokenizer import ByteTokenizer

RATE = 400.0


@pytest.fixture
def engine() -> Iterator[FakeEngine]:
    engine = FakeEngine("x" * 4000, tokens_per_second=RATE)
    yield engine
    engine.close()


def jobs(*outputs: int, arrivals: tuple[float, ...] = ()) -> tuple[Job, ...]:
    times = arrivals or (0.0,) * len(outputs)
    return tuple(
        Job(at, tuple(f"job {index}".encode()), output)
        for index, (at, output) in enumerate(zip(times, outputs, strict=True))
    )


def test_a_trace_comes_from_its_seed_and_keeps_its_bounds() -> None:
    tokenizer = ByteTokenizer()
    trace = make_trace(tokenizer, 40, prompts=(16, 64), outputs=(4, 32), seed=1)
    assert trace == make_trace(tokenizer, 40, prompts=(16, 64), outputs=(4, 32), seed=1)
    assert trace != make_trace(tokenizer, 40, prompts=(16, 64), outputs=(4, 32), seed=2)
    assert all(16 <= len(job.prompt) <= 64 and 4 <= job.output <= 32 for job in trace)
    # No two begin alike, so that the cache finds less than a page.
    assert len({job.prompt[:16] for job in trace}) == 40


def test_lengths_are_log_uniform_and_arrivals_poisson() -> None:
    draw = random.Random(3)
    lengths = [log_uniform(draw, 16, 1024) for _ in range(4000)]
    assert min(lengths) == 16
    assert max(lengths) <= 1024
    assert statistics.median(lengths) == pytest.approx(128, rel=0.1)
    timed = at_rate(jobs(*[1] * 2000), 5.0, seed=4)
    gaps = [b.arrival - a.arrival for a, b in itertools.pairwise(timed)]
    assert statistics.fmean(gaps) == pytest.approx(0.2, rel=0.1)
    assert statistics.stdev(gaps) == pytest.approx(0.2, rel=0.15)


def test_percentiles_are_values_that_occurred() -> None:
    values = [float(value) for value in range(100, 0, -1)]
    assert [percentile(values, share) for share in (0.0, 0.5, 0.99, 1.0)] == [1.0, 50.0, 99.0, 100.0]
    assert percentile([7.0], 0.99) == 7.0


def test_continuous_jobs_wait_for_nobody(engine: FakeEngine) -> None:
    played = play(engine, jobs(200, 20, 20, arrivals=(0.0, 0.0, 0.2)))
    assert played.seconds == pytest.approx(200 / RATE, rel=0.8)
    assert played.tokens_per_second == pytest.approx(240 / played.seconds)
    assert [outcome.latency < 0.2 for outcome in played.outcomes] == [False, True, True]


def test_static_jobs_wait_for_the_slowest_before_them(engine: FakeEngine) -> None:
    work = jobs(160, 20, 20)
    padded = play_static(engine, work, batch=2, is_padded=True)
    loose = play_static(engine, work, batch=2, is_padded=False)
    # Two batches: the long one with a short one, then the last. Padded, both of the first end together.
    long, short, last = padded.latencies
    assert long == short == pytest.approx(160 / RATE, rel=0.8)
    assert last > long
    long, short, last = loose.latencies
    assert short < 0.5 * long < last
    # Work of the padding does not count as tokens.
    assert padded.tokens_per_second == pytest.approx(200 / padded.seconds)


def test_static_jobs_that_have_not_come_are_not_waited_for(engine: FakeEngine) -> None:
    played = play_static(engine, jobs(10, 10, arrivals=(0.0, 0.3)), batch=8, is_padded=True)
    assert all(outcome.latency < 0.2 for outcome in played.outcomes)


def test_goals_are_judged_by_their_comparison() -> None:
    assert Goal("a", 0.03, "<", 0.04).is_met
    assert not Goal("a", 0.04, "<", 0.04).is_met
    assert Goal("a", 2, "<=", 2).is_met
    assert not Goal("a", 1.5, ">=", 1.6).is_met
    missed = Goal("a", 1.5, ">=", 1.6, "x")
    shown = table("T", ("", "n"), [("one", 0.123456), ("two", 1234.5), ("three", 7)])
    assert [row[1] for row in shown.rows] == ["0.123", "1,234", "7"]
    part = PartResult("p", "about", {"n": 1}, (shown,), (missed, Goal("b", 1, "<", 2)))
    report = BenchReport("s", "full", {"model": "m"}, (part,))
    assert not report.ok
    assert report.missed == (missed,)
    assert [goal["met"] for goal in report.as_dict()["parts"]["p"]["goals"]] == [False, True]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"suite": "speed"}, "suite 'speed'"),
        ({"suite": "paging", "parts": ["wast"]}, "part 'wast'"),
        ({"suite": "paging", "scale": "huge"}, "scale 'huge'"),
    ],
)
def test_what_is_not_there_is_refused_before_anything_is_opened(arguments: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidRequest, match=words):
        run_bench(model="/no/such/model.gguf", **arguments)  # type: ignore[arg-type]
