"""A conversation in the terminal: what was said so far, and one question at a time. Prints and stores nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from octavo.engine_client import Completion, Engine, Event, GenerationRequest, Handle, Message, SamplingParams

# Waking up between events lets Ctrl+C through where a wait cannot be interrupted.
_WAKE_SECONDS = 0.5


class Conversation:
    """Messages that grow by a question and its answer at a time."""

    def __init__(self, engine: Engine, *, system: str, sampling: SamplingParams) -> None:
        """Begin with a system prompt; "" for none."""
        self._engine = engine
        self._sampling = sampling
        self._messages = [Message("system", system)] if system else []

    def ask(self, question: str, on_event: Callable[[Event], None]) -> Completion:
        """Have `question` answered; `on_event` gets every event as it comes, on this thread.

        Ctrl+C ends the answer, and its text so far stands (reason "cancelled"); a second one is passed on.

        Raises:
            EngineError: there is no answer; the question is forgotten.
        """
        messages = [*self._messages, Message("user", question)]
        handle = self._engine.submit(GenerationRequest(messages=messages, sampling=self._sampling))
        try:
            _follow(handle, on_event)
        except KeyboardInterrupt:
            handle.cancel()
            _follow(handle, on_event)
        except BaseException:
            handle.cancel()
            raise
        completion = handle.result()
        self._messages = [*messages, Message("assistant", completion.text)] if completion.text else messages
        return completion


def _follow(handle: Handle, on_event: Callable[[Event], None]) -> None:
    for event in _events(handle):
        on_event(event)


def _events(handle: Handle) -> Iterator[Event]:
    while True:
        try:
            yield from handle.events(timeout=_WAKE_SECONDS)
        except TimeoutError:
            continue
        return
