"""One message of a chat, as everything above the database sees it."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import datetime


class Role(enum.StrEnum):
    """Whose words a message holds."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"


class Status(enum.StrEnum):
    """How far a message has come. Only answers are ever other than complete."""

    COMPLETE = "complete"
    STREAMING = "streaming"
    STOPPED = "stopped"
    INTERRUPTED = "interrupted"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message and, for an answer, how it came about.

    Attributes:
        parent_id: the message that it follows; None at the beginning of a chat.
        model: name of the model that answers.
        created: UTC.
        finish_reason: why the answer ended, in the engine's word.
        error: what the answer failed with, a sentence for people.
        prompt_tokens: tokens of everything before the answer; `cached_tokens` of them had not to be computed.
        completion_tokens: tokens of the answer.
        ttft: seconds from the question to the first token.
        seconds: from the question to the end.
        token_ids: the tokens that the model generated; with them it finds what it knows of the chat again.
    """

    id: str
    chat_id: str
    parent_id: str | None
    role: Role
    status: Status
    text: str
    created: datetime
    model: str | None = None
    finish_reason: str | None = None
    error: str | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    completion_tokens: int | None = None
    ttft: float | None = None
    seconds: float | None = None
    token_ids: tuple[int, ...] = ()
