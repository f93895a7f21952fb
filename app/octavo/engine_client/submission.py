"""One answer that was asked for: waits for its model if it must, then carries the engine's events to the chat.

Written to by the loading and the engine's thread, drained by the chat's. Knows no chat and no window.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from octavo.chat.answer import AnswerEvent, Broken, Ended, Held, Holdup
from octavo.engine_client.status import EngineStatus, Phase
from octavo.engine_client.translation import advice_for, answer_events
from octavo_engine import Engine, EngineError, Event, GenerationRequest, Handle


class Submission:
    """An answer on its way, as `octavo.chat.answer.Answer` describes it."""

    def __init__(self, request: GenerationRequest, status: Callable[[], EngineStatus]) -> None:
        """Make a submission that waits; `status` tells what for."""
        self._request = request
        self._status = status
        self._told: str | None = None
        self._model = ""
        self._events: deque[Event] = deque()
        self._end: AnswerEvent | None = None
        self._handle: Handle | None = None
        self._is_cancelled = False
        self._is_waiting = True
        self._changed = threading.Lock()

    def start(self, engine: Engine) -> None:
        """Give the request to the engine, unless it was cancelled meanwhile; the client calls it once."""
        with self._changed:
            self._is_waiting = False
            if self._is_cancelled:
                return
            self._model = engine.info.name
            try:
                self._handle = engine.submit(self._request, self._events.append)
            except EngineError as error:
                self._end = Broken(error.message, advice_for(error))

    def fail(self, error: EngineError) -> None:
        """Say that no engine will answer; the client calls it instead of `start`."""
        with self._changed:
            self._is_waiting = False
            if not self._is_cancelled:
                self._end = Broken(error.message, advice_for(error))

    def drain(self) -> list[AnswerEvent]:
        """What has come since the last call, in the chat's words; never waits."""
        if self._is_waiting and self._end is None:
            return self._waiting()
        # Only this thread takes out, so what is counted now can be taken now.
        events = answer_events([self._events.popleft() for _ in range(len(self._events))], self._model)
        with self._changed:
            if self._end is not None:
                events.append(self._end)
                self._end = None
        return events

    def cancel(self) -> None:
        """End within a step of the engine, or at once where the model is not there yet."""
        with self._changed:
            if self._is_cancelled:
                return
            self._is_cancelled = True
            if self._handle is not None:
                self._handle.cancel()
            elif self._end is None:
                self._end = Ended(reason="cancelled")

    def _waiting(self) -> list[AnswerEvent]:
        """The line on what is waited for, once for each that differs."""
        status = self._status()
        if status.phase is Phase.READY or status.text == self._told:
            return []
        self._told = status.text
        return [Held(Holdup.LOADING, status.text)]
