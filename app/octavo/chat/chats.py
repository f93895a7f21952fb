"""All chats: which there are, their open sessions, and the one call that moves every answer on.

Lives on one thread. Knows no Qt, no database and no engine.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from datetime import UTC, datetime

from octavo.chat.answer import Answerer
from octavo.chat.change import (
    Change,
    ChatAdded,
    ChatChanged,
    ChatError,
    ChatRemoved,
    ChatState,
    KeepingChanged,
    ListChange,
    StateChanged,
)
from octavo.chat.chat import NEW_TITLE, Chat
from octavo.chat.chat_store import ChatStore
from octavo.chat.identifier import new_id
from octavo.chat.listeners import Listeners
from octavo.chat.session import ChatSession


class Chats:
    """The chats of one store, answered by one answerer."""

    def __init__(self, store: ChatStore, answerer: Answerer, *, system: str = "") -> None:
        """Read the list of chats; `system` is the system prompt of new ones. Raises KeepError if it cannot be read."""
        self._store = store
        self._answerer = answerer
        self._system = system
        self._chats = {chat.id: chat for chat in store.chats()}
        self._sessions: dict[str, ChatSession] = {}
        self._problem = store.problem
        self._listeners: Listeners[ListChange] = Listeners()

    @property
    def problem(self) -> ChatError | None:
        """Why chats are not being kept at the moment, or what happened when they were opened; None when all is well."""
        return ChatError(self._problem.message, self._problem.advice) if self._problem else None

    def all(self) -> tuple[Chat, ...]:
        """The chats of the list, the last updated first."""
        return tuple(sorted(self._chats.values(), key=lambda chat: (chat.updated, chat.id), reverse=True))

    def state(self, chat_id: str) -> ChatState:
        """What a chat is doing; an unopened one is idle."""
        session = self._sessions.get(chat_id)
        return session.state if session else ChatState.IDLE

    def subscribe(self, listener: Callable[[ListChange], None]) -> Callable[[], None]:
        """Call `listener` with every change of the list, until the function that comes back is called."""
        return self._listeners.subscribe(listener)

    def new(self) -> ChatSession:
        """An empty chat, which the list and the store have from its first question or draft on.

        One that is still unused is given again, so that empty chats do not pile up.
        """
        for session in self._sessions.values():
            if not session.is_kept:
                return session
        now = datetime.now(UTC)
        chat = Chat(id=new_id(), title=NEW_TITLE, created=now, updated=now, system=self._system)
        return self._begin(chat, is_kept=False)

    def open(self, chat_id: str) -> ChatSession:
        """The session of a chat; there is one for each.

        Raises:
            KeyError: there is no such chat.
            KeepError: its messages cannot be read.
        """
        session = self._sessions.get(chat_id)
        return session if session is not None else self._begin(self._chats[chat_id], is_kept=True)

    def rename(self, chat_id: str, title: str) -> None:
        """Give a chat another title; one of spaces only changes nothing."""
        title = " ".join(title.split())
        if not title:
            return
        session = self._sessions.get(chat_id)
        if session is not None:
            session.rename(title)
            self._list(session)
        else:
            chat = dataclasses.replace(self._chats[chat_id], title=title)
            self._store.save_chat(chat)
            self._chats[chat_id] = chat
            self._listeners.tell(ChatChanged(chat))

    def delete(self, chat_id: str) -> None:
        """Remove a chat for good, and stop what streams in it."""
        session = self._sessions.pop(chat_id, None)
        if session is not None:
            session.abandon()
        if self._chats.pop(chat_id, None) is not None:
            self._store.delete_chat(chat_id)
            self._listeners.tell(ChatRemoved(chat_id))

    def drain_all(self) -> bool:
        """Move every answer on; True while any is on its way or the store has something to write."""
        active = False
        for session in tuple(self._sessions.values()):
            if session.is_active:
                session.drain()
                active = active or session.is_active
        before, self._problem = self.problem, self._store.problem
        if before != self.problem:
            self._listeners.tell(KeepingChanged(self.problem))
        return active or not self._store.is_idle()

    def abandon_all(self) -> None:
        """End every answer on its way here and now, as at the end of the program; what they said so far is kept."""
        for session in self._sessions.values():
            session.abandon()

    def _begin(self, chat: Chat, *, is_kept: bool) -> ChatSession:
        session = ChatSession(chat, store=self._store, answerer=self._answerer, is_kept=is_kept)
        self._sessions[chat.id] = session
        session.subscribe(lambda change: self._on_change(session, change))
        return session

    def _on_change(self, session: ChatSession, change: Change) -> None:
        if isinstance(change, StateChanged) and session.is_kept:
            self._list(session)

    def _list(self, session: ChatSession) -> None:
        """Have the list show a session's chat as it is now."""
        chat = session.chat
        if self._sessions.get(chat.id) is not session:
            # Deleted while it was answering: it does not come back.
            return
        is_known = chat.id in self._chats
        self._chats[chat.id] = chat
        self._listeners.tell(ChatChanged(chat) if is_known else ChatAdded(chat))
