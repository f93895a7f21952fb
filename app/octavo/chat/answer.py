"""An answer on its way and who gives it, in the chat's own words. Knows no engine; one stands behind `Answerer`."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from octavo.chat.advice import Advice
from octavo.chat.message import Role


class Holdup(enum.Enum):
    """What an answer without text is at."""

    LOADING = enum.auto()
    QUEUED = enum.auto()
    READING = enum.auto()
    MEMORY = enum.auto()


@dataclass(frozen=True, slots=True)
class Held:
    """No text at the moment: why, and a line for people."""

    holdup: Holdup
    note: str


@dataclass(frozen=True, slots=True)
class Began:
    """The model that answers has taken the prompt."""

    model: str
    prompt_tokens: int
    cached_tokens: int


@dataclass(frozen=True, slots=True)
class Text:
    """More of the answer: text, and the tokens that were generated for it, whose last may complete a later letter."""

    text: str
    token_ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The answer is over; counts in tokens, times in seconds. `reason` is the engine's word."""

    reason: str
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    completion_tokens: int | None = None
    ttft: float | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Broken:
    """The answer failed: a sentence for people, and what they can do."""

    error: str
    advice: Advice | None


AnswerEvent = Held | Began | Text | Ended | Broken


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of the conversation that a model is given, with the tokens that were generated for it, if known."""

    role: Role
    text: str
    token_ids: tuple[int, ...] = ()


class Answer(Protocol):
    """One answer on its way. It ends in exactly one `Ended` or `Broken`."""

    def drain(self) -> Sequence[AnswerEvent]:
        """What has come since the last call; never waits."""
        ...

    def cancel(self) -> None:
        """End soon with reason "cancelled"; the text so far stands."""
        ...


class Answerer(Protocol):
    """Answers conversations, any number at once."""

    @property
    def model_name(self) -> str | None:
        """The model that would answer now, if one is known."""
        ...

    def ask(self, turns: Sequence[Turn], *, owner: str) -> Answer:
        """Begin an answer, or have it wait for its model; returns at once and never raises."""
        ...
