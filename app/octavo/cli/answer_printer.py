"""How answers appear on standard output: as text, as one object each, or as a line for each event."""

from __future__ import annotations

import dataclasses
import json
import sys
from typing import Any, Protocol

from octavo.cli.complaint import error_object
from octavo.engine_client import Completion, Delta, Event, Failed


class AnswerPrinter(Protocol):
    """Shows one answer after another."""

    def event(self, event: Event) -> None:
        """Something came."""
        ...

    def end(self, completion: Completion, *, model: str, load_seconds: float) -> None:
        """The answer is whole."""
        ...


class TextPrinter:
    """Text as it comes."""

    def event(self, event: Event) -> None:
        """Print the text of a delta."""
        if isinstance(event, Delta) and event.kind == "text":
            print(event.text, end="", flush=True)

    def end(self, completion: Completion, *, model: str, load_seconds: float) -> None:
        """End the line."""
        print(flush=True)


class ObjectPrinter:
    """One JSON object for each answer, once it is whole."""

    def event(self, event: Event) -> None:
        """Wait for the end."""

    def end(self, completion: Completion, *, model: str, load_seconds: float) -> None:
        """Print the object. Times in seconds."""
        usage, timings = completion.usage, completion.timings
        _print_line(
            {
                "text": completion.text,
                "reasoning": completion.reasoning,
                "finish_reason": completion.reason,
                "prompt_tokens": usage.prompt_tokens,
                "cached_tokens": usage.cached_tokens,
                "completion_tokens": usage.completion_tokens,
                "ttft_s": _rounded(timings.ttft),
                "tokens_per_second": _rounded(1 / timings.tpot if timings.tpot else None),
                "load_s": _rounded(load_seconds),
                "model": model,
                "seed": completion.seed,
            }
        )


class EventPrinter:
    """A JSON line for each event: its name in `event`, then its values."""

    def event(self, event: Event) -> None:
        """Print the line."""
        name = type(event).__name__.lower()
        if isinstance(event, Failed):
            _print_line({"event": name, "error": error_object(event.error)})
        else:
            _print_line({"event": name, **dataclasses.asdict(event)})

    def end(self, completion: Completion, *, model: str, load_seconds: float) -> None:
        """Everything was said."""


class PrinterPair:
    """Both of two printers, one after the other."""

    def __init__(self, first: AnswerPrinter, second: AnswerPrinter) -> None:
        """Print with `first`, then with `second`."""
        self._printers = (first, second)

    def event(self, event: Event) -> None:
        """Tell both."""
        for printer in self._printers:
            printer.event(event)

    def end(self, completion: Completion, *, model: str, load_seconds: float) -> None:
        """Tell both."""
        for printer in self._printers:
            printer.end(completion, model=model, load_seconds=load_seconds)


def printer_for(*, as_json: bool, as_events: bool) -> AnswerPrinter:
    """What the flags --json and --stream ask for."""
    if as_json and as_events:
        return PrinterPair(EventPrinter(), ObjectPrinter())
    if as_events:
        return EventPrinter()
    return ObjectPrinter() if as_json else TextPrinter()


def _print_line(content: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(content, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)
