"""Energy is charged to tokens for the time in which the engine worked, and to nobody while it rested."""

import pytest

from octavo_engine import FakeEngine, GenerationRequest, InvalidRequest, cost_per_million_tokens
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
        self.now += seconds
        self.used += seconds * self.busy
        self.tracker.count_step(tokens, seconds)

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
        machine.rest(5.0)
    assert machine.tracker.joules_per_token == pytest.approx(0.25)


def test_prompts_are_paid_by_the_tokens_that_follow() -> None:
    machine = Machine()
    machine.step()
    for _ in range(10):
        machine.step(tokens=0, seconds=0.1)
    for _ in range(100):
        machine.step(tokens=1)
    assert machine.tracker.joules_per_token == pytest.approx(150 / 100, rel=0.1)


def test_a_meter_that_fails_later_takes_the_figure_away_and_says_why() -> None:
    machine = Machine()
    for _ in range(50):
        machine.step()
    machine.broken = True
    for _ in range(50):
        machine.step()
    assert machine.tracker.joules_per_token is None
    assert (machine.tracker.source, machine.tracker.note) == ("not available", "The counter is gone.")


def test_without_a_meter_there_is_a_reason() -> None:
    tracker = EnergyTracker(Unavailable("No counters."))
    tracker.count_step(1, 0.1)
    assert (tracker.joules_per_token, tracker.source, tracker.note) == (None, "not available", "No counters.")


def test_the_engine_tells_its_energy_or_why_not() -> None:
    engine = FakeEngine("Yes.", tokens_per_second=1000)
    engine.submit(GenerationRequest(prompt="x")).result(5)
    stats = engine.stats()
    assert stats.joules_per_token is None
    assert stats.energy_note
    found = find_meter("cpu")
    assert stats.energy_source == ("not available" if isinstance(found, Unavailable) else found.name)
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
