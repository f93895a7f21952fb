"""The list of chats as an item model, with a heading before each group. Knows no view."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import IntEnum
from typing import Any

from PySide6.QtCore import QAbstractListModel, QByteArray, QModelIndex, QObject, QPersistentModelIndex, Qt

from octavo.chat.change import ChatState
from octavo.chat.chat import Chat
from octavo.chat.chats import Chats

_Index = QModelIndex | QPersistentModelIndex
_STATE_WORDS = {
    ChatState.LOADING: "loading",
    ChatState.QUEUED: "queued",
    ChatState.STREAMING: "writing",
    ChatState.WAITING: "waiting",
    ChatState.ERROR: "not answered",
}


class Role(IntEnum):
    """What an index can be asked for."""

    CHAT_ID = Qt.ItemDataRole.UserRole + 1
    TITLE = Qt.ItemDataRole.UserRole + 2
    STATE = Qt.ItemDataRole.UserRole + 3
    UNREAD = Qt.ItemDataRole.UserRole + 4
    IS_HEADING = Qt.ItemDataRole.UserRole + 5
    DETAIL = Qt.ItemDataRole.UserRole + 6
    OWNER = Qt.ItemDataRole.UserRole + 7


@dataclass(frozen=True, slots=True)
class _Row:
    title: str
    chat: Chat | None = None
    state: ChatState = ChatState.IDLE


class ChatListModel(QAbstractListModel):
    """Chats by time, those that are being written to first."""

    def __init__(self, chats: Chats, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._chats = chats
        self._rows: list[_Row] = []
        self._rates: dict[str, float] = {}
        self._unread: set[str] = set()
        # Numbers are given when a chat first writes and stay, so that colours do.
        self._owners: dict[str, int] = {}
        self._now: Callable[[], datetime] = lambda: datetime.now(UTC)
        self.refresh()

    def refresh(self) -> None:
        """Take over which chats there are, in which order and state."""
        rows = self._wanted()
        if [(row.title if row.chat is None else row.chat.id) for row in rows] == [
            (row.title if row.chat is None else row.chat.id) for row in self._rows
        ]:
            self._rows = rows
            if rows:
                self.dataChanged.emit(self.index(0), self.index(len(rows) - 1))
            return
        self.beginResetModel()
        self._rows = rows
        self.endResetModel()

    def set_rates(self, rates: dict[str, float]) -> None:
        """Show tokens a second by chat."""
        if rates != self._rates:
            self._rates = rates
            if self._rows:
                self.dataChanged.emit(self.index(0), self.index(len(self._rows) - 1), [Role.DETAIL])

    def set_unread(self, chat_id: str, unread: bool) -> None:
        """Mark a chat whose answer ended while it was not shown."""
        (self._unread.add if unread else self._unread.discard)(chat_id)
        index = self.index_of(chat_id)
        if index.isValid():
            self.dataChanged.emit(index, index)

    def index_of(self, chat_id: str) -> QModelIndex:
        """Where a chat stands; an invalid index where it does not."""
        for number, row in enumerate(self._rows):
            if row.chat is not None and row.chat.id == chat_id:
                return self.index(number)
        return QModelIndex()

    def owner(self, chat_id: str) -> int:
        """The number of a chat's colour."""
        return self._owners.setdefault(chat_id, len(self._owners))

    def _wanted(self) -> list[_Row]:
        groups: dict[str, list[_Row]] = {}
        today = self._now().astimezone().date()
        chats = self._chats.all()
        for chat in chats:
            state = self._chats.state(chat.id)
            if state.is_active:
                groups.setdefault("Writing now", []).append(_Row(chat.title, chat, state))
        for chat in chats:
            state = self._chats.state(chat.id)
            if not state.is_active:
                group = _group(chat.updated.astimezone().date(), today)
                groups.setdefault(group, []).append(_Row(chat.title, chat, state))
        return [row for name, members in groups.items() for row in (_Row(name), *members)]

    def rowCount(self, parent: _Index = QModelIndex()) -> int:  # noqa: B008 - Qt's own default
        """Chats and headings."""
        return 0 if parent.isValid() else len(self._rows)

    def roleNames(self) -> dict[int, QByteArray]:
        """Roles by name."""
        names = {Role.CHAT_ID: b"chatId", Role.TITLE: b"title", Role.STATE: b"state", Role.UNREAD: b"unread"}
        return super().roleNames() | {int(role): QByteArray(name) for role, name in names.items()}

    def flags(self, index: _Index) -> Qt.ItemFlag:
        """A heading cannot be chosen."""
        if not index.isValid() or self._rows[index.row()].chat is None:
            return Qt.ItemFlag.NoItemFlags
        return Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """One row."""
        if not index.isValid():
            return None
        row = self._rows[index.row()]
        if role in (Qt.ItemDataRole.DisplayRole, Role.TITLE):
            return row.title
        if role == Role.IS_HEADING:
            return row.chat is None
        if row.chat is None:
            return None
        return self._of_chat(row.chat, row.state, role)

    def _of_chat(self, chat: Chat, state: ChatState, role: int) -> Any:
        match role:
            case Role.CHAT_ID:
                return chat.id
            case Role.STATE:
                return state.value
            case Role.UNREAD:
                return chat.id in self._unread
            case Role.OWNER:
                return self.owner(chat.id) if state.is_active else None
            case Role.DETAIL:
                rate = self._rates.get(chat.id)
                is_writing = state is ChatState.STREAMING and rate
                return f"{rate:.0f} tok/s" if is_writing else _STATE_WORDS.get(state, "")
            case Qt.ItemDataRole.ToolTipRole:
                return chat.title
            case Qt.ItemDataRole.AccessibleTextRole:
                return f"{chat.title}, {_STATE_WORDS.get(state, 'idle')}"
        return None


def _group(day: date, today: date) -> str:
    if day >= today:
        return "Today"
    if day == today - timedelta(days=1):
        return "Yesterday"
    return "This week" if day > today - timedelta(days=7) else "Earlier"
