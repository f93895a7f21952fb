"""What listeners of a chat session, or of all chats, are told. Plain values."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from octavo.chat.advice import Advice
from octavo.chat.chat import Chat
from octavo.chat.message import Message


class ChatState(enum.StrEnum):
    """What a chat is doing."""

    IDLE = "idle"
    LOADING = "loading"
    QUEUED = "queued"
    STREAMING = "streaming"
    WAITING = "waiting"
    ERROR = "error"

    @property
    def is_active(self) -> bool:
        """True while an answer is on its way."""
        return self not in (ChatState.IDLE, ChatState.ERROR)


@dataclass(frozen=True, slots=True)
class ChatError:
    """What went wrong, a sentence for people, and what they can do about it."""

    text: str
    action: Advice | None = None


@dataclass(frozen=True, slots=True)
class MessageAdded:
    """A message was added at the end of the shown path."""

    message: Message


@dataclass(frozen=True, slots=True)
class MessageChanged:
    """A message is different now; `appended` is the text that its end grew by, None for any other change."""

    message: Message
    appended: str | None


@dataclass(frozen=True, slots=True)
class StateChanged:
    """The chat's state, its note or its error is different now."""

    state: ChatState


Change = MessageAdded | MessageChanged | StateChanged


@dataclass(frozen=True, slots=True)
class ChatAdded:
    """A chat belongs in the list now."""

    chat: Chat


@dataclass(frozen=True, slots=True)
class ChatChanged:
    """Title, time or state of a listed chat is different now."""

    chat: Chat


@dataclass(frozen=True, slots=True)
class ChatRemoved:
    """A chat no longer exists."""

    chat_id: str


@dataclass(frozen=True, slots=True)
class KeepingChanged:
    """Chats can no longer be kept, for this reason, or (None) can be again."""

    error: ChatError | None


ListChange = ChatAdded | ChatChanged | ChatRemoved | KeepingChanged
