"""The scheduler: which tokens of which sequences the next step computes, and who waits or gives way for it.

It has no phases: a sequence has tokens to compute, one while it decodes and many while its prompt is read, and a step
fills a token budget with decodes first and prompt chunks after. Knows no model, no tensor, no text.
"""

from __future__ import annotations

from dataclasses import dataclass

from octavo_engine.page_pool import PagePool
from octavo_engine.policy import Policy
from octavo_engine.sequence import Sequence, SequenceState


@dataclass(frozen=True, slots=True)
class Row:
    """The share of one sequence in a step: positions `start` to `stop`; `samples` when the next token follows."""

    sequence: Sequence
    start: int
    stop: int

    @property
    def samples(self) -> bool:
        """True when the last known token is among the positions, so that the next one can be drawn."""
        return self.stop == len(self.sequence.tokens)


@dataclass(frozen=True, slots=True)
class Plan:
    """One step: its rows, who entered, who gave way, and who cannot go on for want of pages."""

    rows: tuple[Row, ...]
    admitted: tuple[Sequence, ...]
    preempted: tuple[Sequence, ...]
    out_of_memory: tuple[Sequence, ...]


class Scheduler:
    """Holds the waiting and the running sequences of one engine."""

    def __init__(self, pool: PagePool, policy: Policy, *, max_batch_tokens: int, max_running: int) -> None:
        """Schedule over `pool` with at most `max_running` sequences and `max_batch_tokens` tokens a step."""
        self.pool = pool
        self.policy = policy
        self.max_batch_tokens = max_batch_tokens
        self.max_running = max_running
        self.waiting: list[Sequence] = []
        self.running: list[Sequence] = []

    def add(self, sequence: Sequence) -> None:
        """Queue a sequence."""
        self.waiting.append(sequence)

    def remove(self, sequence: Sequence) -> None:
        """Take a sequence out, wherever it is, and give its pages back."""
        for sequences in (self.waiting, self.running):
            if sequence in sequences:
                sequences.remove(sequence)
        sequence.table.release()
        sequence.state = SequenceState.DONE

    def plan(self) -> Plan:
        """Fill the token budget of the next step and take the pages for it."""
        rows: list[Row] = []
        preempted: list[Sequence] = []
        out_of_memory: list[Sequence] = []
        # A decode stays in the budget even when there are more of them than tokens: the rest follows in the next step.
        budget = self.max_batch_tokens
        for sequence in self._in_order(self.running, decoding=True):
            if budget == 0 or sequence not in self.running:
                continue
            if self._make_room(sequence, len(sequence.tokens), preempted, out_of_memory):
                rows.append(self._row(sequence, 1))
                budget -= 1
        rows = [row for row in rows if row.sequence in self.running]
        for sequence in self._in_order(self.running, decoding=False):
            if budget == 0:
                break
            count = min(budget, sequence.remaining)
            if sequence.table.missing(sequence.computed + count) <= self.pool.free:
                rows.append(self._row(sequence, count))
                budget -= count
        admitted = self._admit(budget, rows) if not preempted else []
        return Plan(tuple(rows), tuple(admitted), tuple(preempted), tuple(out_of_memory))

    def _in_order(self, sequences: list[Sequence], *, decoding: bool) -> list[Sequence]:
        return sorted((s for s in sequences if (s.remaining == 1) == decoding), key=self.policy.key)

    def _row(self, sequence: Sequence, count: int) -> Row:
        sequence.table.cover(sequence.computed + count)
        return Row(sequence, sequence.computed, sequence.computed + count)

    def _make_room(
        self, sequence: Sequence, tokens: int, preempted: list[Sequence], out_of_memory: list[Sequence]
    ) -> bool:
        """Free the pages that `sequence` lacks for `tokens` positions; False when it had to go itself."""
        while sequence.table.missing(tokens) > self.pool.free:
            if len(self.running) == 1:
                out_of_memory.append(sequence)
                return False
            victim = max(self.running, key=self.policy.key)
            self._preempt(victim)
            preempted.append(victim)
            if victim is sequence:
                return False
        return True

    def _preempt(self, victim: Sequence) -> None:
        victim.table.release()
        victim.computed = 0
        victim.preempted = True
        victim.state = SequenceState.QUEUED
        victim.waiting_for = "free pages"
        self.running.remove(victim)
        self.waiting.append(victim)

    def _admit(self, budget: int, rows: list[Row]) -> list[Sequence]:
        """Let waiting sequences in, in order, while budget, places and pages for their whole length last."""
        admitted: list[Sequence] = []
        promised = sum(s.table.missing(len(s.tokens)) for s in self.running)
        for sequence in sorted(self.waiting, key=self.policy.key):
            pages = self.pool.pages_for(len(sequence.tokens))
            if len(self.running) >= self.max_running:
                sequence.waiting_for = "other answers to end"
            elif promised + pages > self.pool.free:
                sequence.waiting_for = "free pages"
            elif budget == 0:
                sequence.waiting_for = "the next step"
            else:
                count = min(budget, sequence.remaining)
                self.waiting.remove(sequence)
                self.running.append(sequence)
                sequence.state = SequenceState.PREFILL
                sequence.waiting_for = None
                rows.append(self._row(sequence, count))
                budget -= count
                promised += sequence.table.missing(len(sequence.tokens))
                admitted.append(sequence)
                continue
            break
        return admitted

    def problems(self) -> list[str]:
        """What is wrong with pool and page tables: one sentence a fault."""
        held = [page for sequence in self.running for page in sequence.table.pages]
        found = self.pool.problems(held)
        for sequence in self.running:
            if len(sequence.table.pages) < self.pool.pages_for(sequence.computed):
                found.append(f"sequence {sequence.id} has {sequence.computed} positions in too few pages")
        found.extend(f"waiting sequence {s.id} holds pages" for s in self.waiting if s.table.pages)
        return found

    def heal(self) -> None:
        """Make the pool agree with the page tables of the running sequences."""
        self.pool.heal(page for sequence in self.running for page in sequence.table.pages)
