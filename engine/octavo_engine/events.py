"""What the engine answers: the events of a handle, and the completion that they add up to. Plain values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from octavo_engine.errors import EngineError

DeltaKind = Literal["text", "reasoning", "tool"]
FinishReason = Literal["stop", "length", "cancelled", "context", "memory", "loop", "tool_calls"]


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one answer: of its prompt, of these the ones whose pages were reused, and generated."""

    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int


@dataclass(frozen=True, slots=True)
class Timings:
    """Seconds from submission: waiting before the first step, to the first token, per later token, in total.

    `ttft` and `tpot` are None where there was no such token.
    """

    queued: float
    ttft: float | None
    tpot: float | None
    total: float


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """Log-probability of a token in the model's own distribution, and of the most likely ones beside it."""

    token_id: int
    logprob: float
    top: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """A piece of a tool call: `arguments` is JSON text that arrives in parts."""

    index: int
    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Started:
    """The sequence takes part in its first step.

    Attributes:
        seed: the seed that gives this text again.
        cached_tokens: prompt tokens whose pages were found.
        inherited_tokens: output tokens that a fork took over from its parent.
    """

    id: str
    index: int
    seed: int
    prompt_tokens: int
    cached_tokens: int
    inherited_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Waiting:
    """Not running yet: why, and how many are before it."""

    reason: str
    position: int


@dataclass(frozen=True, slots=True)
class Progress:
    """Prompt tokens computed so far, of all."""

    computed: int
    total: int


@dataclass(frozen=True, slots=True)
class Delta:
    """New output: text that is final, and the tokens that it came from."""

    index: int
    kind: DeltaKind
    text: str
    token_ids: tuple[int, ...]
    logprobs: tuple[TokenLogprob, ...] | None = None
    call: ToolCallDelta | None = None


@dataclass(frozen=True, slots=True)
class Preempted:
    """The sequence gave its pages to others and comes back by itself: "swap" or "recompute"."""

    how: str


@dataclass(frozen=True, slots=True)
class Resumed:
    """A preempted or paused sequence goes on."""


@dataclass(frozen=True, slots=True)
class Finished:
    """The end of answer `index`. `stop` is the text or token id that ended it, if one did."""

    index: int
    reason: FinishReason
    stop: str | int | None
    usage: Usage
    timings: Timings


@dataclass(frozen=True, slots=True)
class Failed:
    """The submission ended with an error; the text so far stands."""

    error: EngineError


Event = Started | Waiting | Progress | Delta | Preempted | Resumed | Finished | Failed


@dataclass(frozen=True, slots=True)
class Completion:
    """A whole answer. With n > 1 this is answer 0 and the others are its siblings."""

    text: str
    reasoning: str
    tool_calls: tuple[ToolCallDelta, ...]
    token_ids: tuple[int, ...]
    index: int
    reason: FinishReason
    stop: str | int | None
    seed: int
    usage: Usage
    timings: Timings
    logprobs: tuple[TokenLogprob, ...] | None = None
    siblings: tuple[Completion, ...] = field(default=())
