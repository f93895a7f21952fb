"""The scheduler: which tokens of which sequences the next step computes, and who waits or gives way for it.

It has no phases: a sequence has tokens to compute, one while it decodes and many while its prompt is read, and a step
fills a token budget with decodes first and prompt chunks after. Knows no model, no tensor, no text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from octavo_engine.pacer import Pacer, Prompt
from octavo_engine.page_move import MoveKind, PageMove
from octavo_engine.page_pool import PagePool
from octavo_engine.page_table import PageTable
from octavo_engine.policy import Policy
from octavo_engine.prefix_tree import Match, PrefixTree
from octavo_engine.sequence import Sequence, SequenceState


@dataclass(frozen=True, slots=True)
class Row:
    """The share of one sequence in a step: positions `start` to `stop`; `samples` when the next token follows."""

    sequence: Sequence
    start: int
    stop: int

    @property
    def length(self) -> int:
        """Number of positions."""
        return self.stop - self.start

    @property
    def samples(self) -> bool:
        """True when the last known token is among the positions, so that the next one can be drawn."""
        return self.stop == len(self.sequence.tokens)


@dataclass(frozen=True, slots=True)
class Plan:
    """One step: its rows, the moves before them, who entered, who gave way, and who has no pages to go on."""

    rows: tuple[Row, ...]
    moves: tuple[PageMove, ...]
    admitted: tuple[Sequence, ...]
    preempted: tuple[Sequence, ...]
    out_of_memory: tuple[Sequence, ...]


@dataclass(slots=True)
class _Step:
    """A plan in the making; `budget` tokens are left."""

    budget: int
    rows: list[Row] = field(default_factory=list)
    admitted: list[Sequence] = field(default_factory=list)
    preempted: list[Sequence] = field(default_factory=list)
    out_of_memory: list[Sequence] = field(default_factory=list)


class Fetching(Protocol):
    """Where the pages of beginnings are kept that are in no pool."""

    def begin(self, sequence: Sequence, known: int) -> bool:
        """Start to read the pages behind its first `known` tokens; False when there are none.

        While it reads, `sequence.fetching` is True; at the end `sequence.fetched` has the pages.
        """
        ...


class Scheduler:
    """Holds the waiting and the running sequences of one engine."""

    def __init__(
        self, pool: PagePool, tree: PrefixTree, policy: Policy, *, max_batch_tokens: int, max_running: int
    ) -> None:
        """Schedule over `pool` and `tree` with at most `max_running` sequences and `max_batch_tokens` tokens a step."""
        self.pool = pool
        self.tree = tree
        self.policy = policy
        self.max_batch_tokens = max_batch_tokens
        self.max_running = max_running
        # What becomes of the pages of a sequence that gives way: see `EngineConfig.preemption`.
        self.preemption = "auto"
        # How much of the budget prompts may take.
        self.pacer = Pacer()
        # The third tier, if there is one.
        self.disk: Fetching | None = None
        self.waiting: list[Sequence] = []
        self.running: list[Sequence] = []
        self.advances = 0
        # Forks that entered since the last plan, to be announced with it.
        self.forked: list[Sequence] = []

    def add(self, sequence: Sequence) -> None:
        """Queue a sequence."""
        self.waiting.append(sequence)

    def fork(self, parent: Sequence, child: Sequence) -> None:
        """Add `child`, whose tokens begin like those of `parent`, sharing the pages of what both have.

        A child of a parent that is not running, or without a place to run, waits like everybody else and finds its
        beginning in the prefix tree.
        """
        if parent not in self.running or self._places <= 0:
            self.add(child)
            return
        child.computed = min(parent.computed, len(child.tokens) - 1)
        child.table = parent.table.fork(child.computed)
        child.state = SequenceState.PREFILL
        self.running.append(child)
        self.forked.append(child)

    def swap_out(self, sequence: Sequence) -> None:
        """Take a running sequence's pages from the device to the host; it comes back as soon as it can."""
        if sequence in self.running:
            self._preempt(sequence)
            self.tree.swap_out(sequence.tokens)

    def remove(self, sequence: Sequence, *, keep: bool = True) -> None:
        """Take a sequence out, wherever it is; with `keep` the prefix tree gets what it has computed."""
        if sequence in self.waiting:
            self.waiting.remove(sequence)
        if sequence in self.running:
            self.running.remove(sequence)
            self._give_back(sequence, keep=keep)
        sequence.state = SequenceState.DONE

    def advance(self, sequence: Sequence, computed: int) -> None:
        """Note that the positions up to `computed` have their keys and values; full pages can be found from now on."""
        self.advances += 1
        before, sequence.computed = sequence.computed // self.pool.page_size, computed
        full = computed // self.pool.page_size
        if full > before:
            tokens = sequence.tokens[: full * self.pool.page_size]
            sequence.table.adopt(self.tree.insert(tokens, sequence.table.pages[:full], sequence.owner))

    def plan(self) -> Plan:
        """Fill the token budget of the next step and take the pages for it."""
        step = _Step(self.max_batch_tokens, admitted=[child for child in self.forked if child in self.running])
        self.forked.clear()
        # More than may run: some were resumed, or the limit was lowered.
        for sequence in sorted(self._active(), key=self.policy.key)[self.max_running :]:
            self._give_way(sequence, step)
        for sequence in self._in_order(decoding=True):
            # A victim of the one before it is no longer running.
            if step.budget and sequence in self.running and self._make_room(sequence, 1, step):
                self._compute(sequence, 1, step)
        step.rows = [row for row in step.rows if row.sequence in self.running]
        step.budget = self.pacer.limit(len(step.rows), self._prompts(), step.budget)
        for sequence in self._in_order(decoding=False):
            # Prompts wait for their pages, which were counted on admission. Forks were not: where nothing else can
            # move, somebody gives way.
            stuck = not step.rows and not step.preempted
            count = min(step.budget, sequence.remaining)
            if count and (self._fits(sequence, count) or (stuck and self._make_room(sequence, count, step))):
                self._compute(sequence, count, step)
        if not step.preempted:
            self._admit(step)
            step.rows = [row for row in step.rows if row.sequence in self.running]
        return Plan(
            tuple(step.rows),
            self.pool.take_moves(),
            tuple(step.admitted),
            tuple(step.preempted),
            tuple(step.out_of_memory),
        )

    def _in_order(self, *, decoding: bool) -> list[Sequence]:
        return sorted((s for s in self._active() if (s.remaining == 1) == decoding), key=self.policy.key)

    def _prompts(self) -> Iterator[Prompt]:
        """What is to be read, in the order in which it will be."""
        waiting = sorted((s for s in self.waiting if not s.paused), key=self.policy.key)
        for sequence in (*self._in_order(decoding=False), *waiting):
            if sequence.first_token is None:
                yield Prompt(sequence.remaining, sequence.submitted)

    def _active(self) -> list[Sequence]:
        return [sequence for sequence in self.running if not sequence.paused]

    def _fetching(self) -> list[Sequence]:
        return [sequence for sequence in self.waiting if sequence.fetching]

    @property
    def _places(self) -> int:
        """How many more sequences may run; those whose pages are on their way have theirs."""
        return self.max_running - len(self._active()) - len(self._fetching())

    def _compute(self, sequence: Sequence, count: int, step: _Step) -> None:
        """Put the next `count` positions of `sequence` into the step."""
        start, stop = sequence.computed, sequence.computed + count
        sequence.writing = stop
        sequence.table.prepare(start, stop)
        step.rows.append(Row(sequence, start, stop))
        step.budget -= count

    def _fits(self, sequence: Sequence, count: int) -> bool:
        """Whether the pages for the next `count` positions are available; a sequence that has just left needs none."""
        needed = sequence.table.needed(sequence.computed, sequence.computed + count)
        return sequence in self.running and needed <= self.pool.available

    def _make_room(self, sequence: Sequence, count: int, step: _Step) -> bool:
        """See that the next `count` positions have pages; False when the sequence itself had to go for it."""
        while not self._fits(sequence, count):
            if len(self.running) == 1:
                step.out_of_memory.append(sequence)
                return False
            victim = max(self.running, key=lambda each: (each.paused, *self.policy.key(each)))
            self._give_way(victim, step)
            if victim is sequence:
                return False
        return True

    def _give_way(self, victim: Sequence, step: _Step) -> None:
        self._preempt(victim)
        step.preempted.append(victim)

    def _preempt(self, victim: Sequence) -> None:
        known = victim.tokens[: victim.computed]
        self._give_back(victim, keep=self.preemption != "recompute")
        if self.preemption == "recompute":
            self.tree.discard(known, victim.owner)
        elif self.preemption == "swap":
            self.tree.swap_out(known)
        victim.given_up, victim.computed, victim.writing = victim.computed, 0, 0
        victim.state = SequenceState.SWAPPED if self.swaps else SequenceState.QUEUED
        victim.waiting_for = "free pages"
        self.running.remove(victim)
        self.waiting.append(victim)

    def _give_back(self, sequence: Sequence, *, keep: bool) -> None:
        if keep:
            self.tree.insert(sequence.tokens[: sequence.computed], sequence.table.pages, sequence.owner)
        sequence.table.release()

    def _admit(self, step: _Step) -> None:
        """Let waiting sequences in, in order, while budget, places and pages for their whole length last."""
        for sequence in sorted((s for s in self.waiting if not s.paused and not s.fetching), key=self.policy.key):
            if not step.budget:
                sequence.waiting_for = "the next step"
                return
            while self._places <= 0 or not self._enter_if_it_fits(sequence, step):
                victim = self._who_gives_way_to(sequence)
                if victim is not None:
                    self._give_way(victim, step)
                elif self._places <= 0:
                    sequence.waiting_for = "other answers to end"
                    return
                elif self.running or self._fetching():
                    sequence.waiting_for = "free pages"
                    return
                else:
                    # It had shared pages before it gave way, and will never have as many of its own.
                    step.out_of_memory.append(sequence)
                    return

    def _who_gives_way_to(self, sequence: Sequence) -> Sequence | None:
        """Who stands still keeps its pages only as long as nobody needs them; else the last of lower rank goes."""
        paused = [each for each in self.running if each.paused]
        outranked = [each for each in self._active() if self.policy.outranks(sequence, each)]
        # Only who runs has a place to give.
        candidates = (paused if self._places > 0 else []) or outranked
        return max(candidates, key=self.policy.key, default=None)

    def _enter_if_it_fits(self, sequence: Sequence, step: _Step) -> bool:
        """Admit a sequence with its known beginning, if pages for the rest are there beside the promised ones.

        One with pages on disk is held back until they have been read.
        """
        promised = sum(s.table.needed(s.computed, len(s.tokens)) for s in self.running)
        promised += sum(self.pool.pages_for(len(s.tokens)) for s in self._fetching())
        # At least the last token is computed: its logits are what is wanted.
        known = self.tree.match(sequence.tokens[:-1], sequence.owner)
        # A page that is known in part costs a page more, since it is copied, and that may be one too many.
        for match in (known, known.whole_pages(self.pool.page_size)):
            table = PageTable(self.pool, match.pages)
            copied = match.tokens % self.pool.page_size > 0
            needed = self.pool.pages_for(len(sequence.tokens)) - len(match.pages) + copied
            if promised + needed <= self.pool.available:
                if self._begins_to_fetch(sequence, match):
                    table.release()
                else:
                    self._enter(sequence, table, match, step)
                return True
            table.release()
        return False

    def _begins_to_fetch(self, sequence: Sequence, match: Match) -> bool:
        if self.disk is None or sequence.fetched is not None or not self.tree.enabled:
            return False
        if not self.disk.begin(sequence, match.tokens):
            return False
        sequence.waiting_for = "its pages from disk"
        return True

    def _enter(self, sequence: Sequence, table: PageTable, match: Match, step: _Step) -> None:
        for page in self.tree.bring_in(match.on_host):
            table.append(page)
        sequence.table = table
        sequence.computed = min(match.tokens, len(table.pages) * self.pool.page_size)
        self._load(sequence)
        sequence.state = SequenceState.PREFILL
        sequence.waiting_for = None
        self.waiting.remove(sequence)
        self.running.append(sequence)
        step.admitted.append(sequence)
        self._compute(sequence, min(step.budget, sequence.remaining), step)

    def _load(self, sequence: Sequence) -> None:
        """Take over the pages that were read from the disk, where they go on from what is known."""
        size, table, fetched = self.pool.page_size, sequence.table, sequence.fetched
        sequence.fetched = None
        whole = sequence.computed // size
        if fetched is None or not fetched.first <= whole < fetched.stop:
            return
        table.truncate(whole)
        for data in fetched.pages[whole - fetched.first :]:
            page = self.pool.take()
            self.pool.moves.append(PageMove(MoveKind.LOAD, -1, page, data))
            table.append(page)
        sequence.computed = fetched.stop * size
        table.adopt(self.tree.insert(sequence.tokens[: sequence.computed], table.pages, sequence.owner))

    def make_fit(self, device: int, host: int, *, room: int) -> list[Sequence]:
        """Give up what pools of so many pages cannot hold: sequences give way, then cached pages go.

        Cached pages also go as far as more than `room` pages would have to be moved.

        Returns:
            Those who had to give way. The moves that this takes are outstanding.
        """
        gone = []
        self.tree.shrink_host(host)
        while self.pool.used > device:
            victim = max(self.running, key=lambda each: (each.paused, *self.policy.key(each)))
            self._preempt(victim)
            gone.append(victim)
        while self.pool.cached and self.pool.used + self.pool.cached > min(device, room):
            self.tree.evict()
        self.tree.shrink_host(host)
        return gone

    def places(self) -> tuple[dict[int, int], dict[int, int]]:
        """For device and host: the numbers that pages in use get in pools of another size, by their old ones."""
        return self.pool.places(), self.tree.host.places() if self.tree.host is not None else {}

    def resize(self, device: int, host: int, places: Mapping[int, int], host_places: Mapping[int, int]) -> None:
        """Have pools of so many pages, where the contents have moved to `places`; no move may be outstanding."""
        assert not self.pool.moves
        if host and self.tree.host is None:
            self.tree.host = PagePool(host, self.pool.page_size)
        self.tree.renumber(places, host_places)
        for sequence in self.running:
            sequence.table.renumber(places)
        self.pool.resize(device, places)
        if self.tree.host is not None:
            self.tree.host.resize(host, host_places)
        if not host:
            self.tree.host = None

    def problems(self) -> list[str]:
        """What is wrong with pool, page tables and prefix tree: one sentence a fault."""
        found = self.pool.problems(*self._books())
        for sequence in self.running:
            if len(sequence.table.pages) < self.pool.pages_for(sequence.computed):
                found.append(f"sequence {sequence.id} has {sequence.computed} positions in too few pages")
        found.extend(self.tree.problems())
        found.extend(f"waiting sequence {s.id} holds pages" for s in self.waiting if s.table.pages)
        return found

    def heal(self) -> None:
        """Make the pool agree with the page tables of the running sequences and with the prefix tree."""
        self.pool.heal(*self._books())
        self.tree.heal()

    @property
    def swaps(self) -> bool:
        """Whether preempted sequences find their pages on the host again."""
        return self.tree.host is not None and self.tree.enabled and self.preemption != "recompute"

    @property
    def version(self) -> int:
        """Grows with every change of a page or of what is in it."""
        return self.pool.changes + self.advances

    def _books(self) -> tuple[list[int], list[int]]:
        held = [page for sequence in self.running for page in sequence.table.pages]
        return held, [node.page for node in self.tree.nodes() if not node.on_host]
