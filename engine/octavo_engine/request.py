"""What a caller asks for: messages, sampling parameters, priority, grammar. Plain values; knows no model."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from octavo_engine.errors import InvalidRequest

if TYPE_CHECKING:
    from octavo_engine.api import Handle


class Priority(enum.IntEnum):
    """Who goes first under the priority policy; a larger value wins."""

    BACKGROUND = 0
    NORMAL = 1
    INTERACTIVE = 2


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation.

    Attributes:
        role: "system", "user", "assistant" or "tool".
        content: the text, or a sequence of parts.
        reasoning: what an assistant thought before its answer.
        tool_calls: calls that an assistant made.
        tool_call_id: the call that a tool's message answers.
        name: the author's name, where the template uses it.
        token_ids: the tokens that were generated for this text, if known.
    """

    role: str
    content: str | Sequence[Any]
    reasoning: str = ""
    tool_calls: tuple[Any, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None
    token_ids: tuple[int, ...] | None = None

    @classmethod
    def of(cls, value: Message | Mapping[str, Any]) -> Message:
        """The message itself, or one made from a mapping with the same keys.

        Raises:
            InvalidRequest: the mapping has no role or content, or a key that a message does not have.
        """
        if isinstance(value, Message):
            return value
        unknown = set(value) - {f.name for f in fields(cls)}
        if unknown or "role" not in value or "content" not in value:
            raise InvalidRequest(
                "A message needs a role and a content"
                + (f" and does not know {', '.join(sorted(map(str, unknown)))}." if unknown else ".")
            )
        return cls(**value)


@dataclass(frozen=True, slots=True)
class JsonSchema:
    """The answer must be JSON that this schema accepts."""

    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Regex:
    """The whole answer must match this pattern."""

    pattern: str


@dataclass(frozen=True, slots=True)
class Choice:
    """The answer must be one of these texts."""

    options: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Ebnf:
    """The answer must follow this grammar."""

    text: str


Grammar = JsonSchema | Regex | Choice | Ebnf


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How the next token is chosen and when an answer ends.

    Attributes:
        temperature: 0 takes the most likely token; 1 is the model's own distribution.
        top_k: keep the k most likely tokens; 0 keeps all.
        top_p: keep the smallest set of tokens whose probabilities reach this sum; 1 keeps all.
        seed: the same seed gives the same text in any company; None takes a fresh one, which `Started` reports.
        max_tokens: at most so many tokens; None up to the context; 0 computes the prompt only.
        stop_token_ids: tokens that end the answer, beside the model's own.
        ignore_eos: go on over the model's end tokens.
        n: how many answers to the one prompt.
    """

    temperature: float = 0.7
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    typical_p: float = 1.0
    top_n_sigma: float = 0.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    penalty_window: int | None = None
    dry_multiplier: float = 0.0
    dry_base: float = 1.75
    dry_allowed_length: int = 2
    dry_breakers: tuple[str, ...] = ("\n", ":", '"', "*")
    xtc_probability: float = 0.0
    xtc_threshold: float = 0.1
    mirostat_tau: float | None = None
    mirostat_eta: float = 0.1
    dynatemp_range: float = 0.0
    dynatemp_exponent: float = 1.0
    order: tuple[str, ...] | None = None
    seed: int | None = None
    n: int = 1
    max_tokens: int | None = None
    min_tokens: int = 0
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    ignore_eos: bool = False
    stop_on_loop: bool = False
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    logprobs: int | None = None
    grammar: Grammar | None = None
    reasoning_budget: int | None = None


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """One submission: exactly one of messages, prompt and token_ids, and how to answer it.

    Attributes:
        messages: a conversation, rendered with the model's chat template; its text never becomes control tokens.
        prompt: raw text, which may hold control tokens.
        token_ids: the prompt as tokens.
        owner: the caller's key in statistics and page map.
        parent: a handle or id whose pages are worth keeping; never needed for a right answer.
        continue_last: the last message is the assistant's and the answer goes on inside it.
        template_options: passed to the chat template.
        generation_prompt: open the assistant's turn at the end of the prompt.
        keep_on_disk: False keeps its pages out of `EngineConfig.page_store`; for chats that leave no trace.
    """

    messages: Sequence[Message | Mapping[str, Any]] | None = None
    prompt: str | None = None
    token_ids: Sequence[int] | None = None
    sampling: SamplingParams = field(default_factory=SamplingParams)
    priority: Priority = Priority.NORMAL
    owner: str = ""
    parent: Handle | str | None = None
    continue_last: bool = False
    tools: Sequence[Any] | None = None
    tool_choice: str = "auto"
    adapter: str | None = None
    template_options: Mapping[str, Any] | None = None
    generation_prompt: bool = True
    keep_on_disk: bool = True
