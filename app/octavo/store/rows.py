"""Between the database's rows and the chat's values: the statements that read and write them. Knows no threads."""

from __future__ import annotations

import logging
import sqlite3
import sys
from array import array
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from octavo.chat.chat import Chat
from octavo.chat.message import Message, Role, Status

_log = logging.getLogger(__name__)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_ROLES = frozenset(map(str, Role))
_STATUSES = frozenset(map(str, Status))

_SAVE_CHAT = """
    INSERT INTO chat (id, title, created, updated, leaf_id, system) VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET title = excluded.title, updated = excluded.updated, leaf_id = excluded.leaf_id
"""
_SAVE_MESSAGE = """
    INSERT INTO message (id, chat_id, parent_id, role, created, status, model, finish_reason, error,
        prompt_tokens, cached_tokens, completion_tokens, ttft, seconds, token_ids)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET status = excluded.status, model = excluded.model,
        finish_reason = excluded.finish_reason, error = excluded.error, prompt_tokens = excluded.prompt_tokens,
        cached_tokens = excluded.cached_tokens, completion_tokens = excluded.completion_tokens, ttft = excluded.ttft,
        seconds = excluded.seconds, token_ids = excluded.token_ids
"""
_SAVE_TEXT = """
    INSERT INTO part (message_id, position, kind, text) VALUES (?, 0, 'text', ?)
    ON CONFLICT (message_id, position) DO UPDATE SET text = excluded.text
"""
_MESSAGES = """
    SELECT message.id, chat_id, parent_id, role, status, created, model, finish_reason, error, prompt_tokens,
        cached_tokens, completion_tokens, ttft, seconds, token_ids, coalesce(part.text, '')
    FROM message LEFT JOIN part ON part.message_id = message.id AND part.kind = 'text'
    WHERE chat_id = ? ORDER BY message.id
"""


def save_chat(connection: sqlite3.Connection, chat: Chat) -> None:
    """Insert or update a chat's row."""
    created, updated = _microseconds(chat.created), _microseconds(chat.updated)
    connection.execute(_SAVE_CHAT, (chat.id, chat.title, created, updated, chat.leaf_id, chat.system))


def save_messages(connection: sqlite3.Connection, messages: Iterable[Message]) -> None:
    """Insert or update messages with their text; their chat must be there."""
    for message in messages:
        connection.execute(
            _SAVE_MESSAGE,
            (
                message.id,
                message.chat_id,
                message.parent_id,
                message.role,
                _microseconds(message.created),
                message.status,
                message.model,
                message.finish_reason,
                message.error,
                message.prompt_tokens,
                message.cached_tokens,
                message.completion_tokens,
                message.ttft,
                message.seconds,
                _packed(message.token_ids),
            ),
        )
        connection.execute(_SAVE_TEXT, (message.id, message.text))


def save_answers(connection: sqlite3.Connection, answers: Iterable[Message]) -> None:
    """Update those of `answers` that are there; one whose chat was deleted stays away."""
    present = [
        answer
        for answer in answers
        if connection.execute("SELECT 1 FROM message WHERE id = ?", (answer.id,)).fetchone() is not None
    ]
    save_messages(connection, present)


def interrupt_streaming(connection: sqlite3.Connection) -> None:
    """Mark the answers that were on their way when the program ended without a word."""
    connection.execute(
        "UPDATE message SET status = ? WHERE status = 'streaming'",
        (Status.INTERRUPTED,),
    )


def save_draft(connection: sqlite3.Connection, chat: Chat, text: str) -> None:
    """Keep what is typed in a chat, which comes into being with it; "" forgets it."""
    if text:
        if connection.execute("SELECT 1 FROM chat WHERE id = ?", (chat.id,)).fetchone() is None:
            save_chat(connection, chat)
        connection.execute("INSERT OR REPLACE INTO draft (chat_id, text) VALUES (?, ?)", (chat.id, text))
    else:
        connection.execute("DELETE FROM draft WHERE chat_id = ?", (chat.id,))


def delete_chat(connection: sqlite3.Connection, chat_id: str) -> None:
    """Delete a chat, and with it its messages and its draft."""
    connection.execute("DELETE FROM chat WHERE id = ?", (chat_id,))


def chats(connection: sqlite3.Connection) -> tuple[Chat, ...]:
    """All chats, the last updated first."""
    rows = connection.execute(
        "SELECT id, title, created, updated, leaf_id, system FROM chat ORDER BY updated DESC, id DESC"
    )
    return tuple(
        Chat(id=id_, title=title, created=_time(created), updated=_time(updated), leaf_id=leaf_id, system=system)
        for id_, title, created, updated, leaf_id, system in rows
    )


def messages(connection: sqlite3.Connection, chat_id: str) -> tuple[Message, ...]:
    """All messages of a chat. One of a kind that this version does not know is left out, and logged."""
    found = []
    for id_, chat, parent, role, status, created, model, reason, error, *numbers, text in connection.execute(
        _MESSAGES, (chat_id,)
    ):
        if role not in _ROLES or status not in _STATUSES:
            _log.warning("message %s has role %r and status %r, which this version does not know", id_, role, status)
            continue
        prompt_tokens, cached_tokens, completion_tokens, ttft, seconds, token_ids = numbers
        found.append(
            Message(
                id=id_,
                chat_id=chat,
                parent_id=parent,
                role=Role(role),
                status=Status(status),
                text=text,
                created=_time(created),
                model=model,
                finish_reason=reason,
                error=error,
                prompt_tokens=prompt_tokens,
                cached_tokens=cached_tokens,
                completion_tokens=completion_tokens,
                ttft=ttft,
                seconds=seconds,
                token_ids=_unpacked(token_ids),
            )
        )
    return tuple(found)


def draft(connection: sqlite3.Connection, chat_id: str) -> str:
    """What was typed in a chat and not sent."""
    row = connection.execute("SELECT text FROM draft WHERE chat_id = ?", (chat_id,)).fetchone()
    return str(row[0]) if row else ""


def _packed(token_ids: Iterable[int]) -> bytes | None:
    """Token ids as little-endian 32-bit numbers; None without any."""
    numbers = array("i", token_ids)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes() or None


def _unpacked(packed: bytes | None) -> tuple[int, ...]:
    numbers = array("i", packed[: len(packed) - len(packed) % 4] if packed else b"")
    if sys.byteorder == "big":
        numbers.byteswap()
    return tuple(numbers)


def _microseconds(time: datetime) -> int:
    """A time as whole microseconds since 1970, UTC."""
    return (time - _EPOCH) // _MICROSECOND


def _time(microseconds: int) -> datetime:
    return _EPOCH + microseconds * _MICROSECOND
