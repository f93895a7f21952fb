"""A sequence on its way, with its handle and its text, and what is told about it at its beginning and end."""

from __future__ import annotations

from dataclasses import dataclass, field

from octavo_engine.events import Started, Timings
from octavo_engine.handle import LocalHandle
from octavo_engine.sequence import Sequence
from octavo_engine.text_stream import TextStream


@dataclass(eq=False, slots=True)
class Live:
    """A sequence that has not ended, with its handle and its text.

    Attributes:
        parent: the sequence that it is a fork of.
        siblings: further answers to the same prompt, which fork from it when the prompt has been read.
    """

    sequence: Sequence
    handle: LocalHandle
    text: TextStream
    parent: Sequence | None = None
    siblings: list[Live] = field(default_factory=list)
    announced: tuple[str, int] | None = None


def started(sequence: Sequence) -> Started:
    """The event that says that a sequence has been admitted."""
    return Started(
        sequence.id, sequence.index, sequence.seed, sequence.prompt_length, sequence.cached, sequence.inherited
    )


def timings(sequence: Sequence, now: float) -> Timings:
    """Its times until `now`, seconds of the monotonic clock."""
    queued = (sequence.admitted or now) - sequence.submitted
    ttft = tpot = None
    if sequence.first_token is not None and sequence.last_token is not None:
        ttft = sequence.first_token - sequence.submitted
        if sequence.own_length > 1:
            tpot = (sequence.last_token - sequence.first_token) / (sequence.own_length - 1)
    return Timings(queued, ttft, tpot, now - sequence.submitted)
