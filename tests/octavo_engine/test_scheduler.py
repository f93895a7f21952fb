"""The scheduler against a model-free engine: budget, order, preemption, and no deadlock at any pool size."""

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st
from octavo_engine.page_pool import PagePool
from octavo_engine.page_table import PageTable
from octavo_engine.policy import policy_named
from octavo_engine.request import Priority, SamplingParams
from octavo_engine.scheduler import Plan, Scheduler
from octavo_engine.sequence import Sequence, SequenceState

_orders = itertools.count(1)


def make_sequence(pool: PagePool, length: int, priority: Priority = Priority.NORMAL) -> Sequence:
    order = next(_orders)
    return Sequence(
        id=f"s{order}",
        owner="",
        tokens=[1] * length,
        prompt_length=length,
        sampling=SamplingParams(),
        end_ids=frozenset(),
        seed=0,
        order=order,
        priority=priority,
        table=PageTable(pool),
        submitted=0.0,
    )


def make_scheduler(pages: int = 64, *, tokens: int = 64, running: int = 8, policy: str = "fcfs") -> Scheduler:
    return Scheduler(PagePool(pages, 16), policy_named(policy), max_batch_tokens=tokens, max_running=running)


def compute(plan: Plan) -> list[Sequence]:
    """Do what a step does to the books; the sequences that drew a token."""
    drew = []
    for row in plan.rows:
        samples = row.samples
        row.sequence.computed = row.stop
        if samples:
            row.sequence.state = SequenceState.RUNNING
            row.sequence.tokens.append(1)
            drew.append(row.sequence)
    return drew


def test_decodes_come_before_prompt_chunks_and_the_budget_holds() -> None:
    scheduler = make_scheduler(tokens=20)
    first = make_sequence(scheduler.pool, 10)
    scheduler.add(first)
    compute(scheduler.plan())
    long = make_sequence(scheduler.pool, 100)
    scheduler.add(long)
    sizes = []
    while long.remaining > 1:
        plan = scheduler.plan()
        assert plan.rows[0].sequence is first
        assert sum(row.stop - row.start for row in plan.rows) <= 20
        sizes.append(plan.rows[1].stop - plan.rows[1].start)
        compute(plan)
    assert sizes == [19, 19, 19, 19, 19, 5]


def test_admission_waits_for_a_place_and_says_so() -> None:
    scheduler = make_scheduler(running=1)
    one, two = make_sequence(scheduler.pool, 4), make_sequence(scheduler.pool, 4)
    scheduler.add(one)
    scheduler.add(two)
    assert [row.sequence for row in scheduler.plan().rows] == [one]
    assert two.waiting_for == "other answers to end"
    scheduler.remove(one)
    assert [row.sequence for row in scheduler.plan().rows] == [two]


def test_priority_goes_first_and_gives_way_last() -> None:
    scheduler = make_scheduler(pages=4, policy="priority")
    background = make_sequence(scheduler.pool, 16, Priority.BACKGROUND)
    scheduler.add(background)
    compute(scheduler.plan())
    chat = make_sequence(scheduler.pool, 31, Priority.INTERACTIVE)
    scheduler.add(chat)
    for _ in range(40):
        plan = scheduler.plan()
        compute(plan)
        if plan.preempted:
            break
    assert plan.preempted == (background,)
    assert chat in scheduler.running
    assert background.table.pages == []
    assert background.computed == 0


def test_the_last_runner_is_never_its_own_victim() -> None:
    scheduler = make_scheduler(pages=2)
    only = make_sequence(scheduler.pool, 31)
    scheduler.add(only)
    for _ in range(5):
        plan = scheduler.plan()
        if plan.out_of_memory:
            break
        compute(plan)
    assert plan.out_of_memory == (only,)
    assert plan.preempted == ()
    assert len(only.tokens) == 33


@settings(max_examples=150, deadline=None)
@given(
    pages=st.integers(2, 10),
    tokens=st.integers(1, 40),
    running=st.integers(1, 5),
    policy=st.sampled_from(["fcfs", "priority"]),
    lengths=st.lists(st.tuples(st.integers(1, 40), st.integers(0, 50), st.sampled_from(Priority)), max_size=7),
    cancel=st.sets(st.integers(0, 60), max_size=3),
)
def test_everything_ends_and_the_books_hold(
    pages: int,
    tokens: int,
    running: int,
    policy: str,
    lengths: list[tuple[int, int, Priority]],
    cancel: set[int],
) -> None:
    scheduler = make_scheduler(pages, tokens=tokens, running=running, policy=policy)
    wanted = {}
    for length, output, priority in lengths:
        if scheduler.pool.pages_for(length + 1) <= pages:
            sequence = make_sequence(scheduler.pool, length, priority)
            wanted[sequence.id] = length + output
            scheduler.add(sequence)
    for step in range(20_000):
        if not scheduler.running and not scheduler.waiting:
            break
        if step in cancel:
            scheduler.remove((scheduler.running or scheduler.waiting)[0])
        plan = scheduler.plan()
        assert scheduler.problems() == []
        assert sum(row.stop - row.start for row in plan.rows) <= tokens
        assert len(scheduler.running) <= running
        for sequence in plan.out_of_memory:
            scheduler.remove(sequence)
        drew = compute(plan)
        for sequence in drew:
            if len(sequence.tokens) >= wanted[sequence.id]:
                scheduler.remove(sequence)
        assert scheduler.problems() == []
    assert not scheduler.running
    assert not scheduler.waiting
    assert scheduler.pool.free == pages
