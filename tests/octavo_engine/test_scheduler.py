"""The scheduler without a model: budget, order of admission, preemption, reuse."""

import itertools

from octavo_engine.page_pool import PagePool
from octavo_engine.page_table import PageTable
from octavo_engine.policy import policy_named
from octavo_engine.prefix_tree import PrefixTree
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


def make_scheduler(
    pages: int = 64, *, tokens: int = 64, running: int = 8, policy: str = "fcfs", cache: bool = False
) -> Scheduler:
    pool = PagePool(pages, 16)
    tree = PrefixTree(pool, enabled=cache)
    return Scheduler(pool, tree, policy_named(policy), max_batch_tokens=tokens, max_running=running)


def compute(scheduler: Scheduler, plan: Plan) -> list[Sequence]:
    """Do what a step does to the books; the sequences that drew a token."""
    drew = []
    for row in plan.rows:
        samples = row.samples
        scheduler.advance(row.sequence, row.stop)
        if samples:
            row.sequence.state = SequenceState.RUNNING
            row.sequence.tokens.append(1)
            drew.append(row.sequence)
    return drew


def test_decodes_come_before_prompt_chunks_and_the_budget_holds() -> None:
    scheduler = make_scheduler(tokens=20)
    first = make_sequence(scheduler.pool, 10)
    scheduler.add(first)
    compute(scheduler, scheduler.plan())
    long = make_sequence(scheduler.pool, 100)
    scheduler.add(long)
    sizes = []
    while long.remaining > 1:
        plan = scheduler.plan()
        assert plan.rows[0].sequence is first
        assert sum(row.stop - row.start for row in plan.rows) <= 20
        sizes.append(plan.rows[1].stop - plan.rows[1].start)
        compute(scheduler, plan)
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
    compute(scheduler, scheduler.plan())
    chat = make_sequence(scheduler.pool, 31, Priority.INTERACTIVE)
    scheduler.add(chat)
    for _ in range(40):
        plan = scheduler.plan()
        compute(scheduler, plan)
        if plan.preempted:
            break
    assert plan.preempted == (background,)
    assert chat in scheduler.running
    assert background.table.pages == []
    assert background.computed == 0


def test_a_chat_in_front_takes_the_place_of_one_behind_at_once() -> None:
    scheduler = make_scheduler(policy="priority", running=2)
    behind = [make_sequence(scheduler.pool, 20, Priority.BACKGROUND) for _ in range(2)]
    for sequence in behind:
        scheduler.add(sequence)
    while any(sequence.remaining > 1 for sequence in behind):
        compute(scheduler, scheduler.plan())
    chat = make_sequence(scheduler.pool, 20, Priority.INTERACTIVE)
    scheduler.add(chat)
    plan = scheduler.plan()
    assert plan.preempted == (behind[1],)
    assert [row.sequence for row in plan.rows] == [behind[0], chat]
    equal = make_sequence(scheduler.pool, 20, Priority.BACKGROUND)
    scheduler.add(equal)
    compute(scheduler, plan)
    assert scheduler.plan().preempted == ()
    scheduler.policy = policy_named("fcfs")
    scheduler.add(make_sequence(scheduler.pool, 20, Priority.INTERACTIVE))
    assert scheduler.plan().preempted == ()
    assert scheduler.problems() == []


def test_no_more_run_than_may_when_one_is_resumed_or_the_limit_falls() -> None:
    scheduler = make_scheduler(running=2)
    sequences = [make_sequence(scheduler.pool, 4) for _ in range(3)]
    for sequence in sequences:
        scheduler.add(sequence)
    compute(scheduler, scheduler.plan())
    sequences[1].paused = True
    compute(scheduler, scheduler.plan())
    assert scheduler.running == sequences
    sequences[1].paused = False
    plan = scheduler.plan()
    assert plan.preempted == (sequences[2],)
    assert [row.sequence for row in plan.rows] == sequences[:2]
    compute(scheduler, plan)
    scheduler.max_running = 1
    assert [row.sequence for row in scheduler.plan().rows] == sequences[:1]
    assert sequences[1].waiting_for is not None


def test_shortest_job_goes_first_until_waiting_has_made_up_for_length() -> None:
    scheduler = make_scheduler(policy="sjf", running=1)
    long = make_sequence(scheduler.pool, 60)
    scheduler.add(long)
    short = make_sequence(scheduler.pool, 10)
    short.submitted = 1.0
    late = make_sequence(scheduler.pool, 10)
    late.submitted = 2.0
    scheduler.add(late)
    scheduler.add(short)
    order = []
    while scheduler.waiting:
        admitted = scheduler.plan().admitted[0]
        order.append(admitted)
        scheduler.remove(admitted)
    # 50 tokens less are worth a second and a half of waiting.
    assert order == [short, long, late]


def test_the_last_runner_is_never_its_own_victim() -> None:
    scheduler = make_scheduler(pages=2)
    only = make_sequence(scheduler.pool, 31)
    scheduler.add(only)
    for _ in range(5):
        plan = scheduler.plan()
        if plan.out_of_memory:
            break
        compute(scheduler, plan)
    assert plan.out_of_memory == (only,)
    assert plan.preempted == ()
    assert len(only.tokens) == 33


def test_a_known_beginning_is_not_computed_again_but_the_last_token_is() -> None:
    scheduler = make_scheduler(cache=True)
    for tokens, known in (([1] * 32, 0), ([1] * 32, 31), ([1] * 40 + [2], 32)):
        sequence = make_sequence(scheduler.pool, 0)
        sequence.tokens[:] = tokens
        sequence.prompt_length = len(tokens)
        scheduler.add(sequence)
        plan = scheduler.plan()
        assert [(row.start, row.stop) for row in plan.rows] == [(known, len(tokens))]
        # A page of the tree that is only partly wanted is copied before it is written to.
        assert len(plan.moves) == (1 if known % 16 else 0)
        scheduler.advance(sequence, len(tokens))
        scheduler.remove(sequence)
    assert scheduler.problems() == []


def test_equal_prompts_computed_together_end_up_on_the_same_pages() -> None:
    scheduler = make_scheduler(cache=True, tokens=200)
    twins = [make_sequence(scheduler.pool, 50) for _ in range(3)]
    for twin in twins:
        scheduler.add(twin)
    compute(scheduler, scheduler.plan())
    assert len({tuple(twin.table.pages[:3]) for twin in twins}) == 1
    assert scheduler.pool.used == 3 + 3
    assert scheduler.problems() == []
