"""The continuous batcher: one thread that plans a step, runs it and hands out what it gave, until it is closed.

Owns scheduler and runner. Others reach it through `add`, `wake`, `snapshot` and `close`; knows no text but the streams.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import TypeVar

from octavo_engine.energy.tracker import EnergyTracker
from octavo_engine.errors import EngineClosed, EngineError, closed_error
from octavo_engine.events import (
    Delta,
    Event,
    Failed,
    Finished,
    FinishReason,
    Preempted,
    Progress,
    Resumed,
    Usage,
    Waiting,
)
from octavo_engine.handle import LocalHandle
from octavo_engine.live import Live, started, timings
from octavo_engine.metrics import Metrics
from octavo_engine.page_move import MoveKind
from octavo_engine.page_saving import PageSaving
from octavo_engine.pool_size import free_memory
from octavo_engine.runner import Drawn, Runner
from octavo_engine.scheduler import Plan, Row, Scheduler
from octavo_engine.sequence import Sequence, SequenceState
from octavo_engine.stop import append_token
from octavo_engine.watchdog import Watchdog

_log = logging.getLogger(__name__)
_STALL_SECONDS = 0.25
_T = TypeVar("_T")


class EngineLoop:
    """Runs steps on a thread of its own while there is something to run."""

    def __init__(
        self,
        runner: Runner,
        scheduler: Scheduler,
        metrics: Metrics,
        *,
        context: int,
        saving: PageSaving | None = None,
        energy: EnergyTracker | None = None,
    ) -> None:
        """Make a loop over `runner`; `context` is the number of positions that one sequence may have.

        With `saving`, the pages of ended sequences are kept on disk; `energy` counts what the steps use.
        """
        self._runner = runner
        self._metrics = metrics
        self._context = context
        self._saving = saving
        self._energy = energy
        self._inbox: deque[Live] = deque()
        self._live: dict[str, Live] = {}
        self._outbox: list[tuple[LocalHandle, Event]] = []
        self._changed = threading.Condition(threading.RLock())
        self._wishes = False
        self._roused = False
        self._paused = False
        self._stepping = False
        self._distrust_cache = False
        self._wanted_sizes: tuple[int, int] | None = None
        self._closed = False
        self._died = False
        self._checked = True
        self.scheduler = scheduler
        self.watchdog = Watchdog()
        self._thread = threading.Thread(target=self._run, name="octavo-engine", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def add(self, live: Live) -> None:
        """Hand over a new sequence; any thread."""
        with self._changed:
            if self._closed:
                live.handle.push(Failed(closed_error()))
                return
            self._inbox.append(live)
            self._rouse()

    def wake(self) -> None:
        """Look at the handles' wishes before the next step; any thread."""
        with self._changed:
            self._wishes = True
            self._rouse()

    def resize(self, device: int, host: int) -> None:
        """Have pools of so many pages from the next step on; any thread."""
        with self._changed:
            self._wanted_sizes = (device, host)
            self._rouse()

    def nudge(self) -> None:
        """Look again whether there is work; any thread."""
        with self._changed:
            self._rouse()

    def _rouse(self) -> None:
        """See that the loop looks for work, now or, where it is in a step, right after it."""
        self._roused = True
        self._changed.notify_all()

    def set_paused(self, paused: bool) -> None:
        """Stop stepping, or step again; any thread. Returns when no step is running."""
        with self._changed:
            self._paused = paused
            self._rouse()
            if paused and threading.current_thread() is not self._thread:
                self._changed.wait_for(lambda: not self._stepping)

    def snapshot(self, look: Callable[[tuple[Live, ...]], _T]) -> _T:
        """Call `look` with the live sequences between two steps' bookkeeping; any thread."""
        with self._changed:
            return look((*self._live.values(), *self._inbox))

    def close(self) -> None:
        """End every sequence with `EngineClosed` and the thread with it; any thread, idempotent."""
        with self._changed:
            self._closed = True
            self._rouse()
        if self._thread.ident is not None and threading.current_thread() is not self._thread:
            self._thread.join()

    def _run(self) -> None:
        error = closed_error()
        try:
            while self._step():
                pass
        except BaseException as fault:  # noqa: BLE001 - whatever ends the thread, every waiter must hear of it
            _log.exception("the engine thread died")
            self._died = True
            error = EngineClosed(f"The engine stopped with an internal error ({fault!r}); open the model again.")
        finally:
            with self._changed:
                self._closed = True
                self._stepping = False
                self._changed.notify_all()
                ended = [*self._live.values(), *self._inbox]
                self._live.clear()
                self._inbox.clear()
            self._flush()
            if self._saving is not None and not self._died:
                for live in ended:
                    self._saving.add(live.sequence)
                self._saving.save_rest()
            for live in ended:
                self.scheduler.remove(live.sequence, keep=False)
                if not live.handle.done():
                    live.handle.push(Failed(error))
            self._runner.close()

    def _step(self) -> bool:
        """Wait for work and do one step of it; False when the loop is to end."""
        with self._changed:
            self._changed.wait_for(self._has_work)
            if self._closed:
                return False
            self._roused = False
        self._resize()
        with self._changed:
            self._take_inbox()
            self._grant_wishes()
            plan = self.scheduler.plan() if not self._paused else Plan((), (), (), (), ())
            self._announce(plan)
            self._stepping = bool(plan.rows or plan.moves)
            if self._energy is not None and self._stepping:
                self._energy.begin_step()
        self._flush()
        self._metrics.copies_on_write += sum(move.kind is MoveKind.COPY for move in plan.moves)
        if plan.rows or plan.moves:
            drawn = self._run_plan(plan)
            with self._changed:
                self._apply(plan.rows, drawn)
                self._stepping = False
                self._changed.notify_all()
        with self._changed:
            if self._saving is not None:
                self._saving.save(is_busy=bool(plan.rows))
            self._watch(plan)
            idle = not self._live and not self._inbox
            if self._energy is not None and idle:
                self._energy.rest()
            if idle and not self._checked:
                self._check()
            elif not plan.rows and not plan.preempted and not plan.out_of_memory and not idle:
                self._changed.wait_for(lambda: self._roused, _STALL_SECONDS)
            self._checked = idle
        self._flush()
        return True

    def _watch(self, plan: Plan) -> None:
        waiting = [sequence for sequence in self.scheduler.waiting if not sequence.paused]
        reason = next((sequence.waiting_for for sequence in waiting if sequence.waiting_for), None)
        running = bool(plan.rows or plan.moves) or self._paused
        self.watchdog.look(time.monotonic(), running=running, waiting=len(waiting), reason=reason)

    def _has_work(self) -> bool:
        if self._closed or self._inbox or self._wishes or self._wanted_sizes is not None:
            return True
        if self._saving is not None and self._saving.has_work:
            return True
        return bool(self._live) and not self._paused

    def _take_inbox(self) -> None:
        while self._inbox:
            live = self._inbox.popleft()
            self._enter(live, live.parent)

    def _enter(self, live: Live, parent: Sequence | None) -> None:
        self._live[live.sequence.id] = live
        if parent is None:
            self.scheduler.add(live.sequence)
        else:
            self.scheduler.fork(parent, live.sequence)

    def _grant_wishes(self) -> None:
        self._wishes = False
        for live in tuple(self._live.values()):
            if live.handle.cancelled:
                for each in (live, *live.siblings):
                    self._finish(each, "cancelled")
                continue
            if live.handle.priority is not None:
                live.sequence.priority = live.handle.priority
            if live.handle.paused != live.sequence.paused:
                live.sequence.paused = live.handle.paused
                if not live.sequence.paused and live.sequence in self.scheduler.running:
                    self._send(live, Resumed())
            if live.handle.swap_wanted:
                live.handle.swap_wanted = False
                if live.sequence in self.scheduler.running:
                    self.scheduler.swap_out(live.sequence)
                    self._send(live, self._preempted())

    def _resize(self) -> None:
        """Bring the pools to the wanted sizes; where the memory cannot be had they stay as they are."""
        with self._changed:
            if self._wanted_sizes is None:
                return
            (device, host), self._wanted_sizes = self._wanted_sizes, None
            # Cached pages that cannot be in memory twice while they move are not worth it.
            room = free_memory() // max(1, self._runner.page_bytes)
            for sequence in self.scheduler.make_fit(device, host, room=room):
                self._metrics.preemptions += 1
                self._send(self._live[sequence.id], self._preempted())
            moves = Plan((), self.scheduler.pool.take_moves(), (), (), ())
            places = self.scheduler.places()
        if moves.moves:
            self._apply((), self._run_plan(moves))
        try:
            self._runner.resize(device, host, *places)
        except (RuntimeError, MemoryError) as fault:
            _log.warning("the page pools keep their size, there is no memory for another: %s", fault)
            return
        with self._changed:
            self.scheduler.resize(device, host, *places)

    def _preempted(self) -> Preempted:
        """What becomes of the pages of who gives way now."""
        return Preempted("swap" if self.scheduler.swaps else "recompute")

    def _announce(self, plan: Plan) -> None:
        """Tell who entered, gave way, waits, or has to end for want of pages."""
        for sequence in plan.out_of_memory:
            self._finish(self._live[sequence.id], "memory")
        for sequence in plan.preempted:
            self._metrics.preemptions += 1
            self._send(self._live[sequence.id], self._preempted())
        for sequence in plan.admitted:
            live = self._live[sequence.id]
            if sequence.admitted is not None:
                self._metrics.recomputes += sequence.computed < sequence.given_up
                self._send(live, Resumed())
            else:
                sequence.admitted = time.monotonic()
                sequence.cached = min(sequence.computed, sequence.prompt_length)
                self._metrics.prompt_tokens += sequence.prompt_length
                self._metrics.cached_tokens += sequence.cached
                self._send(live, started(sequence))
        waiting = sorted(self.scheduler.waiting, key=self.scheduler.policy.key)
        for position, sequence in enumerate(waiting, 1):
            live = self._live[sequence.id]
            reason = sequence.waiting_for or waiting[0].waiting_for or "the next step"
            if live.announced != (reason, position):
                live.announced = (reason, position)
                self._send(live, Waiting(reason, position))
        for live in self._live.values():
            live.handle.state = "paused" if live.sequence.paused else live.sequence.state.value

    def _run_plan(self, plan: Plan) -> list[Drawn]:
        """Run a step; an error in it ends the sequences in it and no others."""
        started = time.monotonic()
        try:
            drawn = self._runner.run(plan.rows, plan.moves)
        except Exception as fault:  # noqa: BLE001 - a fault of ours in one step must not end the other chats
            _log.exception("a step failed")
            # Some of the moves may not have been made, so that cached pages may not hold what they should.
            self._distrust_cache = True
            error = EngineError(f"The engine failed while computing this answer ({fault!r}); ask again.")
            return [error] * len(plan.rows)
        seconds = time.monotonic() - started
        self.scheduler.pacer.observe(sum(row.length for row in plan.rows if row.length > 1), seconds)
        return drawn

    def _apply(self, rows: tuple[Row, ...], drawn: list[Drawn]) -> None:
        now = time.monotonic()
        tokens = 0
        for row, token in zip(rows, drawn, strict=True):
            live = self._live.get(row.sequence.id)
            if live is None:
                # An error in another answer of its submission has ended it in this step.
                continue
            if isinstance(token, EngineError):
                self._fail(live, token)
                continue
            again = row.samples and token is None
            self.scheduler.advance(row.sequence, row.stop - 1 if again else row.stop)
            if row.sequence.state is SequenceState.PREFILL and not again:
                self._send(live, Progress(row.sequence.computed, len(row.sequence.tokens)))
            if token is not None:
                tokens += 1
                self._advance(live, token, now)
        if self._distrust_cache:
            self._distrust_cache = False
            self.scheduler.tree.clear()
        self._metrics.count_step(tokens)
        if self._energy is not None:
            self._energy.count_step(tokens)

    def _advance(self, live: Live, token: int, now: float) -> None:
        """Add a drawn token to its sequence and say so."""
        sequence = live.sequence
        while live.siblings:
            self._enter(live.siblings.pop(0), sequence)
        sequence.state = SequenceState.RUNNING
        live.handle.state = sequence.state.value
        before = len(sequence.tokens)
        reason = append_token(sequence, token, context=self._context)
        if len(sequence.tokens) > before:
            sequence.first_token = sequence.first_token or now
            sequence.last_token = now
            self._send(live, Delta(sequence.index, "text", live.text.push(token), (token,)))
        if reason is not None:
            self._finish(live, reason)

    def _finish(self, live: Live, reason: FinishReason) -> None:
        sequence = live.sequence
        rest = live.text.end()
        if rest:
            self._send(live, Delta(sequence.index, "text", rest, ()))
        times = timings(sequence, time.monotonic())
        usage = Usage(sequence.prompt_length, sequence.cached, sequence.own_length)
        self._metrics.count_finished(times)
        self._send(live, Finished(sequence.index, reason, sequence.ended_by, usage, times))
        if self._saving is not None:
            self._saving.add(sequence)
        self._drop(live)

    def _fail(self, live: Live, error: EngineError) -> None:
        """End a submission with `error`: all its answers, since none of them can be waited for any more."""
        self._send(live, Failed(error))
        for other in [other for other in self._live.values() if other.handle is live.handle]:
            self._drop(other, keep=False)

    def _drop(self, live: Live, *, keep: bool = True) -> None:
        self.scheduler.remove(live.sequence, keep=keep)
        # A sibling that has not entered is not among them.
        self._live.pop(live.sequence.id, None)

    def _send(self, live: Live, event: Event) -> None:
        self._outbox.append((live.handle, event))

    def _flush(self) -> None:
        """Hand the events out, without holding the lock while callers' code runs."""
        outbox, self._outbox = self._outbox, []
        for handle, event in outbox:
            handle.push(event)

    def _check(self) -> None:
        problems = self.scheduler.problems()
        if problems:
            _log.error("the page books were wrong and have been mended: %s", "; ".join(problems))
            self.scheduler.heal()
