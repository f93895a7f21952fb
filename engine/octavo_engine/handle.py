"""A submission as its caller sees it: events, result, cancel. Any thread; knows no scheduler and no model."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator

from octavo_engine.api import Handle, OnEvent
from octavo_engine.errors import InvalidRequest
from octavo_engine.events import Completion, Delta, Event, Failed, Finished
from octavo_engine.request import Priority, SamplingParams

_log = logging.getLogger(__name__)


class LocalHandle:
    """Collects the events of one submission and wakes who waits for them."""

    def __init__(
        self, identifier: str, owner: str, *, seed: int, on_event: OnEvent | None, on_change: Callable[[], None]
    ) -> None:
        """Make a handle whose events also go to `on_event`; `on_change` wakes the engine after a caller's wish."""
        self.id = identifier
        self.owner = owner
        self.seed = seed
        self.state = "queued"
        self.cancelled = False
        self.priority: Priority | None = None
        self._on_event = on_event
        self._on_change = on_change
        self._changed = threading.Condition()
        self._events: list[Event] = []
        self._read = 0

    def push(self, event: Event) -> None:
        """Add an event; the engine's side of the handle."""
        with self._changed:
            assert not self.done(), f"{event} after the end"
            self._events.append(event)
            if isinstance(event, Finished | Failed):
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
        assert isinstance(last, Finished)
        return _completion(self._events, last, self.seed)

    def done(self) -> bool:
        """True after the last event."""
        return self.state == "done"

    def cancel(self) -> None:
        """End within a step with reason "cancelled"; the text so far stands."""
        self.cancelled = True
        self._on_change()

    def set_priority(self, priority: Priority) -> None:
        """Change the priority from the next step on."""
        self.priority = Priority(priority)
        self._on_change()

    def pause(self) -> None:
        """Not of this version; raises InvalidRequest."""
        raise InvalidRequest("This version of Octavo cannot pause a single answer; stop it and ask again.")

    def resume(self) -> None:
        """Not of this version; raises InvalidRequest."""
        raise InvalidRequest("This version of Octavo cannot pause a single answer, so none can be resumed.")

    def swap_out(self) -> None:
        """Not of this version; raises InvalidRequest."""
        raise InvalidRequest("This version of Octavo does not swap pages to host memory.")

    def fork(
        self, n: int = 1, *, at: int | None = None, sampling: SamplingParams | None = None, owner: str | None = None
    ) -> list[Handle]:
        """Not of this version; raises InvalidRequest."""
        raise InvalidRequest("This version of Octavo cannot fork an answer; submit the branch as a request of its own.")


def _completion(events: list[Event], last: Finished, seed: int) -> Completion:
    deltas = [event for event in events if isinstance(event, Delta)]
    return Completion(
        text="".join(delta.text for delta in deltas if delta.kind == "text"),
        reasoning="".join(delta.text for delta in deltas if delta.kind == "reasoning"),
        tool_calls=tuple(delta.call for delta in deltas if delta.call is not None),
        token_ids=tuple(token for delta in deltas for token in delta.token_ids),
        index=last.index,
        reason=last.reason,
        stop=last.stop,
        seed=seed,
        usage=last.usage,
        timings=last.timings,
    )
