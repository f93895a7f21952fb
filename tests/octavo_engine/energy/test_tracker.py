"""Energy is charged to tokens for the time in which the engine worked, and to nobody while it rested."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo_engine import (
    FakeEngine,
    GenerationRequest,
    InvalidRequest,
    SamplingParams,
    cost_per_million_tokens,
    local_engine,
)
from octavo_engine.energy import tracker
from octavo_engine.energy.meter import EnergyUnavailable, Unavailable, find_meter
from octavo_engine.energy.tracker import EnergyTracker


class Machine:
    """Takes `idle` watts at rest and `busy` watts while a step runs; counts how often it is asked."""

    name = "made"

    def __init__(self, idle: float = 10.0, busy: float = 50.0) -> None:
        self.now = 0.0
        self.used = 0.0
        self.idle = idle
        self.busy = busy
        self.asked = 0
        self.broken = False
        self.tracker = EnergyTracker(self, lambda: self.now)

    def joules(self) -> float:
        self.asked += 1
        if self.broken:
            raise EnergyUnavailable("The counter is gone.")
        return self.used

    def step(self, tokens: int = 4, seconds: float = 0.02) -> None:
        self.tracker.begin_step()
        self.now += seconds
        self.used += seconds * self.busy
        self.tracker.count_step(tokens)

    def end(self) -> None:
        self.tracker.rest()

    def rest(self, seconds: float) -> None:
        self.now += seconds
        self.used += seconds * self.idle


def test_joules_of_busy_time_by_tokens() -> None:
    machine = Machine()
    assert machine.tracker.joules_per_token is None
    assert machine.tracker.note == "No answer has been long enough yet to tell."
    for _ in range(200):
        machine.step()
    # 50 W for 20 ms are a joule for four tokens.
    assert machine.tracker.joules_per_token == pytest.approx(0.25)
    assert (machine.tracker.source, machine.tracker.note) == ("made", "")
    assert machine.asked <= 200 * 0.02 / 0.5 + 1


def test_rest_belongs_to_nobody() -> None:
    machine = Machine(idle=1000.0)
    for _ in range(10):
        for _ in range(60):
            machine.step()
        machine.end()
        machine.rest(5.0)
        # Said again when pages have been written to disk meanwhile.
        machine.end()
    assert machine.tracker.joules_per_token == pytest.approx(0.25)


def test_a_prompt_read_in_the_first_step_is_paid_by_its_answer() -> None:
    machine = Machine()
    for _ in range(20):
        machine.step(tokens=1, seconds=3.0)
        for _ in range(110):
            machine.step(tokens=1)
        machine.end()
        machine.rest(10.0)
    # 150 J for the prompt and a joule for each token behind the first.
    assert machine.tracker.joules_per_token == pytest.approx((150 + 110) / 111)


def test_a_short_answer_behind_a_long_prompt_counts_whole() -> None:
    machine = Machine()
    machine.step(tokens=1, seconds=3.0)
    for _ in range(10):
        machine.step(tokens=1)
    machine.end()
    assert machine.tracker.joules_per_token == pytest.approx((150 + 10) / 11)


def test_a_pause_between_steps_ends_a_span_and_drops_its_remainder() -> None:
    machine = Machine(idle=1000.0)
    for _ in range(3):
        machine.step(tokens=1, seconds=0.6)
        # Not counted: the engine did not say that it rested, so its energy is not known apart.
        machine.step(tokens=7, seconds=0.3)
        machine.rest(2.0)
    assert machine.tracker.joules_per_token == pytest.approx(30.0)


def test_a_short_span_behind_a_pause_does_not_count() -> None:
    machine = Machine()
    machine.step(tokens=1, seconds=0.6)
    machine.rest(2.0)
    machine.step(tokens=7, seconds=0.3)
    machine.end()
    assert machine.tracker.joules_per_token == pytest.approx(30.0)


def test_a_paused_answer_that_is_cancelled_later_costs_nothing_more() -> None:
    machine = Machine(idle=1000.0)
    machine.step(tokens=1, seconds=0.6)
    machine.step(tokens=1)
    machine.rest(60.0)
    machine.end()
    assert machine.tracker.joules_per_token == pytest.approx(30.0)


def test_the_pauses_between_steps_are_work() -> None:
    machine = Machine(idle=50.0)
    for _ in range(200):
        machine.step(tokens=1)
        machine.rest(0.02)
    machine.end()
    assert machine.tracker.joules_per_token == pytest.approx(2.0)


def test_answers_that_are_too_short_give_no_figure() -> None:
    machine = Machine()
    for _ in range(20):
        for _ in range(20):
            machine.step()
        machine.end()
        machine.rest(10.0)
    assert machine.tracker.joules_per_token is None
    assert machine.tracker.note == "No answer has been long enough yet to tell."


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("step"), st.floats(0.001, 2.0)),
            st.tuples(st.just("rest"), st.floats(0.0, 2.0)),
            st.tuples(st.just("end"), st.just(0.0)),
        ),
        max_size=200,
    )
)
def test_whatever_happens_reads_are_few_and_only_work_is_charged(happenings: list[tuple[str, float]]) -> None:
    """A step has a token for each microsecond, and rest takes no power: a figure can only be what steps use."""
    machine = Machine(idle=0.0, busy=50.0)
    for kind, seconds in happenings:
        if kind == "step":
            machine.step(tokens=round(seconds * 1e6), seconds=round(seconds, 6))
        elif kind == "rest":
            machine.rest(seconds)
        else:
            machine.end()
    told = machine.tracker.joules_per_token
    assert told is None or told == pytest.approx(50e-6)
    assert machine.asked <= 4 * machine.now + 1


def test_many_tiny_answers_cost_few_readings() -> None:
    machine = Machine()
    for _ in range(500):
        machine.step(tokens=1, seconds=0.01)
        machine.end()
        machine.rest(0.11)
    assert machine.asked <= 2 * machine.now + 1


def test_a_meter_that_fails_later_takes_the_figure_away_and_says_why() -> None:
    machine = Machine()
    for _ in range(50):
        machine.step()
    assert machine.tracker.note == ""
    machine.broken = True
    asked = machine.asked
    for _ in range(50):
        machine.step()
    machine.end()
    assert machine.tracker.joules_per_token is None
    assert (machine.tracker.source, machine.tracker.note) == ("not available", "The counter is gone.")
    assert machine.asked == asked + 1


def test_without_a_meter_there_is_a_reason() -> None:
    none = EnergyTracker(Unavailable("No counters."))
    none.begin_step()
    none.count_step(1)
    none.rest()
    assert (none.joules_per_token, none.source, none.note) == (None, "not available", "No counters.")


def test_the_engine_tells_its_energy_or_why_not() -> None:
    engine = FakeEngine("Yes.", tokens_per_second=1000)
    engine.submit(GenerationRequest(prompt="x")).result(5)
    stats = engine.stats()
    assert stats.joules_per_token is None
    assert stats.energy_note
    found = find_meter("cpu")
    assert stats.energy_source == ("not available" if isinstance(found, Unavailable) else found.name)
    engine.close()


class Reads:
    """A meter whose every reading is a joule more; it fails after `good` of them."""

    name = "reads"

    def __init__(self, good: int = 1000) -> None:
        self.asked = 0
        self.good = good

    def joules(self) -> float:
        self.asked += 1
        if self.asked > self.good:
            raise EnergyUnavailable("The counter is gone.")
        return float(self.asked)


def test_the_engine_counts_from_before_the_first_step_to_behind_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    meter = Reads()
    # However slow the machine that tests: the pauses between these steps are no rest.
    monkeypatch.setattr(tracker, "_REST", 60.0)
    monkeypatch.setattr(local_engine, "find_meter", lambda kind: meter)
    engine = FakeEngine("x" * 1000, tokens_per_second=100)
    request = GenerationRequest(prompt="x", sampling=SamplingParams(max_tokens=70))
    tokens = engine.submit(request).result(20).usage.completion_tokens
    stats = engine.stats()
    assert (stats.energy_source, stats.energy_note) == ("reads", "")
    # The first reading is where counting begins; all others are a joule each.
    assert stats.joules_per_token == pytest.approx((meter.asked - 1) / tokens)
    assert meter.asked >= 3
    engine.close()


def test_the_engine_goes_on_when_its_meter_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_engine, "find_meter", lambda kind: Reads(good=1))
    engine = FakeEngine("x" * 1000, tokens_per_second=100)
    request = GenerationRequest(prompt="x", sampling=SamplingParams(max_tokens=70))
    assert engine.submit(request).result(20).text == "x" * 70
    stats = engine.stats()
    assert (stats.joules_per_token, stats.energy_note) == (None, "The counter is gone.")
    assert engine.submit(request).result(20).text == "x" * 70
    engine.close()


def test_cost_per_million_tokens() -> None:
    # 3.6 J a token are 1 kWh for a million.
    assert cost_per_million_tokens(0.30, joules_per_token=3.6) == pytest.approx(0.30)
    assert cost_per_million_tokens(0.30, watts=72, tokens_per_second=20) == pytest.approx(0.30)
    assert cost_per_million_tokens(0.0, joules_per_token=3.6) == 0.0


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"joules_per_token": 1.0, "watts": 1.0},
        {"watts": 10.0},
        {"watts": 10.0, "tokens_per_second": 0.0},
        {"joules_per_token": -1.0},
        {"joules_per_token": float("nan")},
    ],
)
def test_cost_refuses_what_makes_no_sense(values: dict[str, float]) -> None:
    with pytest.raises(InvalidRequest):
        cost_per_million_tokens(0.3, **values)
    with pytest.raises(InvalidRequest, match="price_per_kwh"):
        cost_per_million_tokens(-0.3, joules_per_token=1.0)
