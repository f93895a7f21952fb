"""Random work over random pools: whatever happens, every sequence reads what it wrote and everything ends.

The machine keeps a memory with one token in each slot where the engine would keep keys and values. Each step makes the
planned copies, writes the planned positions, and then checks that every position of every row holds its own token.
"""

from collections.abc import Iterator

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from octavo_engine.page_move import MoveKind, PageMove
from octavo_engine.page_pool import PagePool
from octavo_engine.page_table import PageTable
from octavo_engine.policy import policy_named
from octavo_engine.prefix_tree import PrefixTree
from octavo_engine.request import Priority, SamplingParams
from octavo_engine.scheduler import Plan, Scheduler
from octavo_engine.sequence import FetchedPages, Sequence, SequenceState

PAGE = 4
LONGEST = 60


def moved(memory: list[int], pages: int, places: dict[int, int]) -> list[int]:
    """A memory of `pages` pages with the contents at their new places."""
    new = [-1] * (pages * PAGE)
    for old, place in places.items():
        new[place * PAGE : (place + 1) * PAGE] = memory[old * PAGE : (old + 1) * PAGE]
    return new


class Disk:
    """Pages of ended sequences; what is asked for comes when the machine says so, sometimes not all of it."""

    def __init__(self) -> None:
        self.beginnings: set[tuple[int, ...]] = set()
        self.asked: list[tuple[Sequence, int, list[bytearray]]] = []

    def keep(self, tokens: list[int]) -> None:
        self.beginnings.update(tuple(tokens[:stop]) for stop in range(PAGE, len(tokens) + 1, PAGE))

    def begin(self, sequence: Sequence, known: int) -> bool:
        tokens, first = sequence.tokens[:-1], known // PAGE
        stop = first
        while len(tokens) >= (stop + 1) * PAGE and tuple(tokens[: (stop + 1) * PAGE]) in self.beginnings:
            stop += 1
        if stop == first:
            return False
        pages = [bytearray(tokens[page * PAGE : (page + 1) * PAGE]) for page in range(first, stop)]
        sequence.fetching = True
        self.asked.append((sequence, first, pages))
        return True

    def deliver(self, lost: int) -> None:
        for sequence, first, pages in self.asked:
            sequence.fetched = FetchedPages(first, tuple(pages[: max(0, len(pages) - lost)]))
            sequence.fetching = False
        self.asked.clear()


class SchedulingMachine(RuleBasedStateMachine):
    """Submits, forks, cancels, pauses, swaps out and reconfigures between steps."""

    @initialize(
        pages=st.integers(2, 16),
        tokens=st.integers(1, 30),
        running=st.integers(1, 5),
        policy=st.sampled_from(["fcfs", "sjf", "priority"]),
        cache=st.booleans(),
        host_pages=st.sampled_from([0, 1, 3, 12]),
        has_disk=st.booleans(),
    )
    def open(
        self, pages: int, tokens: int, running: int, policy: str, cache: bool, host_pages: int, has_disk: bool
    ) -> None:
        pool = PagePool(pages, PAGE)
        self.host = PagePool(host_pages, PAGE) if host_pages else None
        self.host_memory = [-1] * (host_pages * PAGE)
        self.tree = PrefixTree(pool, self.host, enabled=cache)
        self.scheduler = Scheduler(pool, self.tree, policy_named(policy), max_batch_tokens=tokens, max_running=running)
        self.pool = pool
        self.disk = Disk()
        self.scheduler.disk = self.disk if has_disk else None
        self.memory = [-1] * (pages * PAGE)
        self.wanted: dict[str, int] = {}
        self.ended: list[Sequence] = []
        self.order = 0

    def live(self) -> Iterator[Sequence]:
        yield from self.scheduler.running
        yield from self.scheduler.waiting

    def make(self, tokens: list[int], prompt: int, output: int, priority: Priority) -> Sequence:
        self.order += 1
        sequence = Sequence(
            id=f"s{self.order}",
            owner=f"o{self.order % 3}",
            tokens=tokens,
            prompt_length=prompt,
            sampling=SamplingParams(),
            end_ids=frozenset(),
            seed=0,
            order=self.order,
            priority=priority,
            table=PageTable(self.pool),
            submitted=0.0,
        )
        self.wanted[sequence.id] = min(LONGEST, len(tokens) + output)
        return sequence

    @rule(
        tokens=st.lists(st.integers(0, 1), min_size=1, max_size=30),
        output=st.integers(1, 20),
        priority=st.sampled_from(Priority),
    )
    def submit(self, tokens: list[int], output: int, priority: Priority) -> None:
        if self.pool.pages_for(len(tokens) + 1) <= self.pool.total:
            self.scheduler.add(self.make(tokens, len(tokens), output, priority))

    @rule(data=st.data(), added=st.lists(st.integers(0, 1), min_size=1, max_size=6), is_cold=st.booleans())
    def next_turn(self, data: st.DataObject, added: list[int], is_cold: bool) -> None:
        if self.ended:
            tokens = [*data.draw(st.sampled_from(self.ended[-3:])).tokens, *added]
            if is_cold:
                self.tree.clear()
            if self.pool.pages_for(len(tokens) + 1) <= self.pool.total and len(tokens) < LONGEST:
                self.scheduler.add(self.make(tokens, len(tokens), 3, Priority.NORMAL))

    @rule(data=st.data(), output=st.integers(1, 20))
    def fork(self, data: st.DataObject, output: int) -> None:
        parents = [*self.live(), *self.ended[-3:]]
        if parents:
            parent = data.draw(st.sampled_from(parents))
            kept = data.draw(st.integers(0, len(parent.tokens) - parent.prompt_length))
            tokens = parent.tokens[: parent.prompt_length + kept]
            if self.pool.pages_for(len(tokens) + 1) <= self.pool.total:
                self.scheduler.fork(parent, self.make(tokens, parent.prompt_length, output, parent.priority))

    @rule(data=st.data(), keep=st.booleans())
    def end(self, data: st.DataObject, keep: bool) -> None:
        sequences = list(self.live())
        if sequences:
            self.remove(data.draw(st.sampled_from(sequences)), keep=keep)

    def remove(self, sequence: Sequence, *, keep: bool = True) -> None:
        self.disk.keep(sequence.tokens[: sequence.computed])
        self.scheduler.remove(sequence, keep=keep)
        self.ended.append(sequence)

    @rule(
        tokens=st.integers(1, 30),
        running=st.integers(1, 5),
        policy=st.sampled_from(["fcfs", "sjf", "priority"]),
        preemption=st.sampled_from(["auto", "swap", "recompute"]),
    )
    def configure(self, tokens: int, running: int, policy: str, preemption: str) -> None:
        self.scheduler.preemption = preemption if self.host is not None or preemption != "swap" else "auto"
        self.scheduler.max_batch_tokens = tokens
        self.scheduler.max_running = running
        self.scheduler.policy = policy_named(policy)

    @rule(pages=st.integers(2, 16), host_pages=st.sampled_from([0, 2, 12]), room=st.sampled_from([0, 3, 100]))
    def resize(self, pages: int, host_pages: int, room: int) -> None:
        self.scheduler.make_fit(pages, host_pages, room=room)
        self.move(self.pool.take_moves())
        places, host_places = self.scheduler.places()
        self.memory = moved(self.memory, pages, places)
        self.host_memory = moved(self.host_memory, host_pages, host_places)
        self.scheduler.resize(pages, host_pages, places, host_places)
        self.host = self.tree.host
        for sequence in list(self.live()):
            if self.pool.pages_for(len(sequence.tokens) + 1) > pages:
                self.remove(sequence)

    @rule(lost=st.integers(0, 2))
    def deliver(self, lost: int) -> None:
        self.disk.deliver(lost)

    @rule(owner=st.sampled_from(["o0", "o1", None]))
    def drop_cache(self, owner: str | None) -> None:
        if owner is None:
            self.tree.clear()
        else:
            self.tree.forget(owner)

    @rule(data=st.data())
    def swap_out(self, data: st.DataObject) -> None:
        if self.scheduler.running:
            self.scheduler.swap_out(data.draw(st.sampled_from(self.scheduler.running)))

    @rule(data=st.data(), paused=st.booleans())
    def pause(self, data: st.DataObject, paused: bool) -> None:
        sequences = list(self.live())
        if sequences:
            data.draw(st.sampled_from(sequences)).paused = paused

    @rule(steps=st.integers(1, 8))
    def step(self, steps: int) -> None:
        for _ in range(steps):
            self.compute(self.scheduler.plan())

    def compute(self, plan: Plan) -> None:
        for sequence in plan.out_of_memory:
            self.remove(sequence)
        self.move(plan.moves)
        for row in plan.rows:
            slots = row.sequence.table.slots(row.start, row.stop)
            for slot, token in zip(slots, row.sequence.tokens[row.start : row.stop], strict=True):
                self.memory[slot] = token
        for row in plan.rows:
            read = [self.memory[slot] for slot in row.sequence.table.slots(0, row.stop)]
            assert read == row.sequence.tokens[: row.stop], f"{row.sequence.id} reads another's pages"
        assert sum(row.length for row in plan.rows) <= self.scheduler.max_batch_tokens
        assert len(plan.rows) <= self.scheduler.max_running
        for row in plan.rows:
            samples = row.samples
            self.scheduler.advance(row.sequence, row.stop)
            if samples:
                row.sequence.state = SequenceState.RUNNING
                row.sequence.tokens.append((len(row.sequence.tokens) + self.order) % 2)
                if len(row.sequence.tokens) >= self.wanted[row.sequence.id]:
                    self.remove(row.sequence)
        self.wipe()

    def move(self, moves: tuple[PageMove, ...]) -> None:
        for move in moves:
            if move.kind is MoveKind.LOAD:
                assert move.data is not None
                self.memory[move.target * PAGE : (move.target + 1) * PAGE] = list(move.data)
                continue
            sources = self.host_memory if move.kind is MoveKind.IN else self.memory
            targets = self.host_memory if move.kind is MoveKind.OUT else self.memory
            page = sources[move.source * PAGE : (move.source + 1) * PAGE]
            targets[move.target * PAGE : (move.target + 1) * PAGE] = page

    def wipe(self) -> None:
        """What a free page held must not be found by luck."""
        held = {page for sequence in self.scheduler.running for page in sequence.table.pages}
        kept = {node.page for node in self.tree.nodes() if not node.on_host}
        for page in set(range(self.pool.total)) - held - kept:
            self.memory[page * PAGE : (page + 1) * PAGE] = [-1] * PAGE

    @invariant()
    def books_hold(self) -> None:
        if hasattr(self, "scheduler"):
            assert self.scheduler.problems() == []
            assert self.pool.free + self.pool.used + self.pool.cached == self.pool.total

    def teardown(self) -> None:
        if not hasattr(self, "scheduler"):
            return
        for sequence in self.live():
            sequence.paused = False
        for _ in range(20_000):
            if not any(self.live()):
                break
            self.disk.deliver(0)
            self.compute(self.scheduler.plan())
        assert not any(self.live()), "a sequence never ends"
        assert self.pool.available == self.pool.total
        self.tree.clear()
        assert self.pool.free == self.pool.total
        assert self.host is None or self.host.free == self.host.total


SchedulingMachine.TestCase.settings = settings(max_examples=120, stateful_step_count=40, deadline=None)
TestSchedulingMachine = SchedulingMachine.TestCase
