"""A sequence: one running generation, its tokens, pages and times. Knows neither scheduler nor tensors."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from octavo_engine.page_table import PageTable
from octavo_engine.request import Priority, SamplingParams


class SequenceState(enum.StrEnum):
    """Where a sequence stands."""

    QUEUED = "queued"
    PREFILL = "prefill"
    RUNNING = "running"
    DONE = "done"


@dataclass(eq=False, slots=True)
class Sequence:
    """One generation from admission to its end.

    Attributes:
        tokens: prompt and output.
        end_ids: tokens that end the answer.
        seed: random numbers are drawn from (seed, index, output position).
        order: place in the order of arrival.
        computed: positions whose keys and values are in pages.
        ended_by: the token that ended the answer, if one did; it is not part of the output.
        submitted, admitted, first_token, last_token: seconds of the monotonic clock.
    """

    id: str
    owner: str
    tokens: list[int]
    prompt_length: int
    sampling: SamplingParams
    end_ids: frozenset[int]
    seed: int
    order: int
    priority: Priority
    table: PageTable
    submitted: float
    index: int = 0
    state: SequenceState = SequenceState.QUEUED
    computed: int = 0
    preempted: bool = False
    ended_by: int | None = None
    admitted: float | None = None
    first_token: float | None = None
    last_token: float | None = None
    waiting_for: str | None = None

    @property
    def output_length(self) -> int:
        """Tokens generated so far."""
        return len(self.tokens) - self.prompt_length

    @property
    def remaining(self) -> int:
        """Tokens whose keys and values have yet to be computed; 1 while decoding."""
        return len(self.tokens) - self.computed

    @property
    def output(self) -> list[int]:
        """The tokens generated so far."""
        return self.tokens[self.prompt_length :]
