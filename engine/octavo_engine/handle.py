"""A submission as its caller sees it: events, result, cancel. Any thread; knows no scheduler and no model."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from octavo_engine.api import Handle, OnEvent
from octavo_engine.errors import InvalidRequest
from octavo_engine.events import Completion, Delta, Event, Failed, Finished
from octavo_engine.request import GenerationRequest, Priority, SamplingParams

if TYPE_CHECKING:
    from octavo_engine.sequence import Sequence

_log = logging.getLogger(__name__)


class HandleOwner(Protocol):
    """What a handle asks of its engine."""

    @property
    def capabilities(self) -> frozenset[str]:
        """What the engine can do."""
        ...

    def wake(self) -> None:
        """Look at the handle's wishes."""
        ...

    def fork(
        self, parent: LocalHandle, n: int, *, at: int | None, sampling: SamplingParams | None, owner: str | None
    ) -> list[Handle]:
        """Fork a sequence; see `Handle.fork`."""
        ...


@dataclass(frozen=True, slots=True)
class Inherited:
    """What a fork took over from its parent: output tokens and the text that they complete."""

    token_ids: tuple[int, ...] = ()
    text: str = ""


class LocalHandle:
    """Collects the events of one submission and wakes who waits for them."""

    def __init__(
        self,
        identifier: str,
        owner: str,
        *,
        request: GenerationRequest,
        seed: int,
        engine: HandleOwner,
        answers: int = 1,
        inherited: Inherited = Inherited(),
        on_event: OnEvent | None = None,
    ) -> None:
        """Make a handle for `answers` sequences whose events also go to `on_event`."""
        self.id = identifier
        self.owner = owner
        self.request = request
        self.seed = seed
        self.inherited = inherited
        # The first of its sequences once it is prepared; its tokens are what a fork takes over.
        self.sequence: Sequence | None = None
        self._engine = engine
        self._open = answers
        self.state = "queued"
        self.cancelled = False
        self.paused = False
        self.swap_wanted = False
        self.priority: Priority | None = None
        self._on_event = on_event
        self._changed = threading.Condition()
        self._events: list[Event] = []
        self._read = 0

    def push(self, event: Event) -> None:
        """Add an event; the engine's side of the handle."""
        with self._changed:
            assert not self.done(), f"{event} after the end"
            self._events.append(event)
            if isinstance(event, Finished):
                self._open -= 1
            if isinstance(event, Failed) or not self._open:
                self.state = "done"
            self._changed.notify_all()
        if self._on_event is not None:
            try:
                self._on_event(event)
            except Exception:  # noqa: BLE001 - the caller's code: whatever it raises must not stop the other sequences
                _log.exception("on_event of %s raised", self.id)

    def events(self, timeout: float | None = None) -> Iterator[Event]:
        """The events from the start, read once; `timeout` seconds for each, then TimeoutError."""
        while True:
            with self._changed:
                if not self._changed.wait_for(lambda: self._read < len(self._events) or self.state == "done", timeout):
                    raise TimeoutError(f"no event of {self.id} within {timeout} s")
                if self._read == len(self._events):
                    return
                event = self._events[self._read]
                self._read += 1
            yield event

    def result(self, timeout: float | None = None) -> Completion:
        """Wait for the end and add the events up.

        Raises:
            TimeoutError: not ended within `timeout` seconds; nothing has changed.
            EngineError: what the submission failed with.
        """
        with self._changed:
            if not self._changed.wait_for(self.done, timeout):
                raise TimeoutError(f"{self.id} has not ended within {timeout} s")
            last = self._events[-1]
        if isinstance(last, Failed):
            raise last.error
        return self._completion()

    def done(self) -> bool:
        """True after the last event."""
        return self.state == "done"

    def cancel(self) -> None:
        """End within a step with reason "cancelled"; the text so far stands."""
        self.cancelled = True
        self._engine.wake()

    def set_priority(self, priority: Priority) -> None:
        """Change the priority from the next step on."""
        self.priority = Priority(priority)
        self._engine.wake()

    def pause(self) -> None:
        """Leave the batch and keep the pages; others may take them where memory is short."""
        self.paused = True
        self._engine.wake()

    def resume(self) -> None:
        """Come back into the batch."""
        self.paused = False
        self._engine.wake()

    def swap_out(self) -> None:
        """Move the pages to host memory; they come back with the next step, or when a paused answer is resumed.

        Raises:
            InvalidRequest: the engine has no host pool.
        """
        if "swap" not in self._engine.capabilities:
            raise InvalidRequest("This engine has no host pool; open it with host_pages to swap answers out.")
        self.swap_wanted = True
        self._engine.wake()

    def fork(
        self, n: int = 1, *, at: int | None = None, sampling: SamplingParams | None = None, owner: str | None = None
    ) -> list[Handle]:
        """New sequences that share this one's pages and go on from its first `at` output tokens.

        Args:
            n: how many.
            at: output tokens to keep; None keeps all that are known now.
            sampling: parameters of the forks; None takes this one's with a fresh seed. `max_tokens` counts new tokens.
            owner: key of the forks in statistics; None takes this one's.

        Raises:
            InvalidRequest: the answer has not begun, or has fewer tokens than `at`.
            EngineClosed: the engine no longer answers.
        """
        return self._engine.fork(self, n, at=at, sampling=sampling, owner=owner)

    def _completion(self) -> Completion:
        """The answers, added up from the events; the first one with the others as its siblings."""
        answers = [self._answer(event) for event in self._events if isinstance(event, Finished)]
        first, *others = sorted(answers, key=lambda answer: answer.index)
        return replace(first, siblings=tuple(others))

    def _answer(self, finished: Finished) -> Completion:
        deltas = [event for event in self._events if isinstance(event, Delta) and event.index == finished.index]
        own = tuple(token for delta in deltas for token in delta.token_ids)
        return Completion(
            text=self.inherited.text + "".join(delta.text for delta in deltas if delta.kind == "text"),
            reasoning="".join(delta.text for delta in deltas if delta.kind == "reasoning"),
            tool_calls=tuple(delta.call for delta in deltas if delta.call is not None),
            token_ids=self.inherited.token_ids + own,
            index=finished.index,
            reason=finished.reason,
            stop=finished.stop,
            seed=self.seed,
            usage=finished.usage,
            timings=finished.timings,
        )
