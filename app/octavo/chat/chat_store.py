"""What a chat needs of the place that keeps it. Knows no database; one stands behind `ChatStore`."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from typing import Protocol

from octavo.chat.advice import Advice
from octavo.chat.chat import Chat
from octavo.chat.message import Message


class KeepError(Exception):
    """Chats cannot be kept, or not read: a sentence for people, and what they can do."""

    def __init__(self, message: str, *, advice: Advice | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice


class ChatStore(Protocol):
    """Keeps chats. Writing returns at once; its future is done when the disk has it, or fails with a `KeepError`."""

    @property
    def problem(self) -> KeepError | None:
        """Why chats are not being kept at the moment, or what happened when they were opened."""
        ...

    def chats(self) -> tuple[Chat, ...]:
        """All chats, the last updated first."""
        ...

    def messages(self, chat_id: str) -> tuple[Message, ...]:
        """All messages of a chat, in any order."""
        ...

    def draft(self, chat_id: str) -> str:
        """What was typed and not sent."""
        ...

    def save_chat(self, chat: Chat) -> Future[None]:
        """Keep a chat's row."""
        ...

    def save_turn(self, chat: Chat, messages: Sequence[Message]) -> Future[None]:
        """Keep a chat with a question and its answer (and what could not be kept before), all or nothing."""
        ...

    def save_answer(self, message: Message) -> None:
        """Keep how far an answer has come, within half a second; tried again until it succeeds."""
        ...

    def save_draft(self, chat: Chat, text: str) -> Future[None]:
        """Keep what is typed and not sent; "" forgets it."""
        ...

    def delete_chat(self, chat_id: str) -> Future[None]:
        """Remove a chat and all of its messages."""
        ...

    def is_idle(self) -> bool:
        """True when nothing waits to be written."""
        ...
