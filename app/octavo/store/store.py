"""The store: chats, messages and drafts of one database, for callers on any thread.

Writing goes to the writer's thread and gives a future; reading has a connection of its own and waits for no writer.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import TypeVar

from octavo.chat.chat import Chat
from octavo.chat.message import Message
from octavo.store import rows
from octavo.store.errors import StoreError, store_error
from octavo.store.opening import Opened, open_database
from octavo.store.writer import Change, Writer

_T = TypeVar("_T")


class Store:
    """One open database. Close it at the end."""

    def __init__(self, path: Path, opened: Opened) -> None:
        """Take over what `open` opened."""
        self._path = path
        self._reading = opened.reading
        self._reads = threading.Lock()
        self._lock = opened.lock
        self._problem = opened.problem
        self._writer = Writer(opened.writing, path) if opened.writing is not None else None
        self._is_closed = False

    @classmethod
    def open(cls, path: Path) -> Store:
        """Open the database at `path`, or make it; answers that were on their way become interrupted.

        What may not be written is opened for looking, and what is damaged is set aside; `problem` then says so.

        Raises:
            StoreInUse: another process has it open.
        """
        return cls(path, open_database(path, path.parent / "backups"))

    @property
    def is_read_only(self) -> bool:
        """True where nothing can be kept; `problem` says why."""
        return self._writer is None

    @property
    def problem(self) -> StoreError | None:
        """Why chats are not being kept at the moment, else what happened when they were opened, else None."""
        return (self._writer.problem if self._writer else None) or self._problem

    def chats(self) -> tuple[Chat, ...]:
        """All chats, the last updated first. Raises StoreError."""
        return self._read(rows.chats)

    def messages(self, chat_id: str) -> tuple[Message, ...]:
        """All messages of a chat. Raises StoreError."""
        return self._read(lambda connection: rows.messages(connection, chat_id))

    def draft(self, chat_id: str) -> str:
        """What was typed in a chat and not sent. Raises StoreError."""
        return self._read(lambda connection: rows.draft(connection, chat_id))

    def save_chat(self, chat: Chat) -> Future[None]:
        """Keep a chat's row; the future is done when it is committed, or fails with a StoreError."""
        return self._write(lambda connection: rows.save_chat(connection, chat))

    def save_turn(self, chat: Chat, messages: Sequence[Message]) -> Future[None]:
        """Keep a chat with new messages and forget its draft, in one transaction; the future as in `save_chat`."""

        def change(connection: sqlite3.Connection) -> None:
            rows.save_chat(connection, chat)
            rows.save_messages(connection, messages)
            rows.save_draft(connection, chat, "")

        return self._write(change)

    def save_answer(self, message: Message) -> None:
        """Keep how far an answer has come, within half a second; tried again until it succeeds."""
        if self._writer is not None:
            self._writer.put_answer(message)

    def save_draft(self, chat: Chat, text: str) -> Future[None]:
        """Keep what is typed and not sent; "" forgets it. The future as in `save_chat`."""
        return self._write(lambda connection: rows.save_draft(connection, chat, text))

    def delete_chat(self, chat_id: str) -> Future[None]:
        """Remove a chat with its messages and its draft, from the write-ahead log too; the future as in `save_chat`."""
        return self._write(lambda connection: rows.delete_chat(connection, chat_id), truncates=True)

    def is_idle(self) -> bool:
        """True when nothing waits to be written."""
        return self._writer is None or self._writer.is_idle()

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until everything is committed; False where it cannot be, or not within `timeout` seconds."""
        return self._writer is None or self._writer.flush(timeout)

    def close(self) -> None:
        """Commit what waits, and give back thread, connections and lock. Idempotent."""
        if self._is_closed:
            return
        self._is_closed = True
        # The last connection to close tidies the write-ahead log away, and only one that may write can.
        with self._reads:
            self._reading.close()
        if self._writer is not None:
            self._writer.close()
        if self._lock is not None:
            self._lock.release()

    def _read(self, look: Callable[[sqlite3.Connection], _T]) -> _T:
        with self._reads:
            try:
                return look(self._reading)
            except sqlite3.Error as fault:
                raise store_error(fault, self._path) from fault

    def _write(self, change: Change, *, truncates: bool = False) -> Future[None]:
        if self._writer is not None:
            return self._writer.put(change, truncates=truncates)
        assert self._problem is not None
        refused: Future[None] = Future()
        refused.set_exception(self._problem)
        return refused
