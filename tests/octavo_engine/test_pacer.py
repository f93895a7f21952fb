"""Goals for first and further tokens decide how large the chunks of a prompt are. The time is a made one."""

import pytest

from octavo_engine.pacer import Pacer, Prompt
from octavo_engine.page_pool import PagePool
from octavo_engine.page_table import PageTable
from octavo_engine.policy import policy_named
from octavo_engine.prefix_tree import PrefixTree
from octavo_engine.request import Priority, SamplingParams
from octavo_engine.scheduler import Scheduler
from octavo_engine.sequence import Sequence, SequenceState

DECODE, TOKEN = 0.020, 0.001


class Simulation:
    """A scheduler whose steps take DECODE seconds and TOKEN seconds more for each prompt token."""

    def __init__(self, *, ttft_goal: float | None = None, tpot_goal: float | None = None) -> None:
        self.now = 0.0
        pool = PagePool(1000, 16)
        self.scheduler = Scheduler(pool, PrefixTree(pool), policy_named("fcfs"), max_batch_tokens=512, max_running=8)
        self.scheduler.pacer = Pacer(ttft_goal, tpot_goal, clock=lambda: self.now)
        self.first: dict[str, float] = {}
        self.mixed: list[float] = []
        self.count = 0

    def submit(self, tokens: int) -> str:
        self.count += 1
        sequence = Sequence(
            id=f"s{self.count}",
            owner="",
            tokens=[self.count] * tokens,
            prompt_length=tokens,
            sampling=SamplingParams(),
            end_ids=frozenset(),
            seed=0,
            order=self.count,
            priority=Priority.NORMAL,
            table=PageTable(self.scheduler.pool),
            submitted=self.now,
        )
        self.scheduler.add(sequence)
        return sequence.id

    def step(self) -> None:
        plan = self.scheduler.plan()
        prompt = sum(row.length for row in plan.rows if row.length > 1)
        decodes = len([row for row in plan.rows if row.length == 1])
        seconds = DECODE + TOKEN * prompt
        self.now += seconds
        if prompt and decodes:
            self.mixed.append(seconds)
        self.scheduler.pacer.observe(prompt, seconds)
        for row in plan.rows:
            samples = row.samples
            self.scheduler.advance(row.sequence, row.stop)
            if samples:
                row.sequence.state = SequenceState.RUNNING
                row.sequence.tokens.append(0)
                row.sequence.first_token = self.first.setdefault(row.sequence.id, self.now)

    def read(self, tokens: int) -> float:
        """Seconds to the first token of a prompt that comes while another chat decodes."""
        self.submit(4)
        for _ in range(5):
            self.step()
        identifier, submitted = self.submit(tokens), self.now
        while identifier not in self.first:
            self.step()
        return self.first[identifier] - submitted


def test_without_goals_a_prompt_takes_the_whole_budget() -> None:
    simulation = Simulation()
    simulation.read(1000)
    assert max(simulation.mixed) == pytest.approx(DECODE + TOKEN * 511)


def test_a_goal_for_each_token_keeps_the_steps_short() -> None:
    simulation = Simulation(tpot_goal=0.080)
    simulation.read(1000)
    assert max(simulation.mixed) <= 0.080
    # Nearly as much as is allowed: 60 tokens a step.
    assert len(simulation.mixed) <= 1000 / 50


def test_a_goal_that_cannot_be_kept_still_lets_prompts_pass() -> None:
    simulation = Simulation(tpot_goal=0.001)
    simulation.read(200)
    assert max(simulation.mixed) == pytest.approx(DECODE + TOKEN * 32)
    assert len(simulation.mixed) <= 1 + 200 / 16


def test_a_goal_for_the_first_token_takes_just_the_chunks_that_it_needs() -> None:
    fast = Simulation().read(1000)
    simulation = Simulation(ttft_goal=2.0)
    assert fast < 1.2
    assert 1.5 < simulation.read(1000) <= 2.0
    assert max(simulation.mixed) < 0.080


def test_the_first_token_wins_where_both_goals_cannot_be_kept() -> None:
    slow = Simulation(tpot_goal=0.030).read(1000)
    simulation = Simulation(ttft_goal=1.5, tpot_goal=0.030)
    assert slow > 2.0
    assert simulation.read(1000) <= 1.5
    assert max(simulation.mixed) > 0.030


def test_prompts_in_line_count_too() -> None:
    pacer = Pacer(ttft_goal=1.0, clock=lambda: 0.0)
    pacer.observe(0, DECODE)
    pacer.observe(100, DECODE + 100 * TOKEN)
    alone = pacer.limit(1, [Prompt(400, 0.0)], 512)
    behind = pacer.limit(1, [Prompt(400, 0.0), Prompt(400, 0.0)], 512)
    assert alone < behind < 512
    assert pacer.limit(1, [Prompt(1000, 0.0)], 512) == 512
    assert pacer.limit(0, [Prompt(400, 0.0)], 512) == 512
