"""The tree of a chat's messages, in which each message knows only its parent.

Opens whatever it is given: rows in any order, parents that are missing, rows that are each other's parents.
"""

from __future__ import annotations

from collections.abc import Iterable

from octavo.chat.message import Message


class MessageTree:
    """Messages by identifier, and what one asks of a tree. Children stand in the order of their identifiers."""

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        """Make a tree of `messages`; of two with one identifier the later one counts."""
        self._messages: dict[str, Message] = {}
        self._children: dict[str | None, list[str]] = {}
        for message in messages:
            self.put(message)

    def __len__(self) -> int:
        return len(self._messages)

    def __contains__(self, identifier: object) -> bool:
        return identifier in self._messages

    def __getitem__(self, identifier: str) -> Message:
        return self._messages[identifier]

    def put(self, message: Message) -> None:
        """Add a message, or put it in the place of the one with its identifier."""
        before = self._messages.get(message.id)
        if before is not None and before.parent_id != message.parent_id:
            self._children[before.parent_id].remove(before.id)
            before = None
        if before is None:
            siblings = self._children.setdefault(message.parent_id, [])
            siblings.append(message.id)
            if len(siblings) > 1 and siblings[-2] > message.id:
                siblings.sort()
        self._messages[message.id] = message

    def path(self, leaf_id: str | None) -> tuple[Message, ...]:
        """The messages from the beginning to `leaf_id`; from an orphan or out of a cycle it begins where it must."""
        path: list[Message] = []
        seen: set[str] = set()
        current = leaf_id
        while current is not None and current in self._messages and current not in seen:
            seen.add(current)
            message = self._messages[current]
            path.append(message)
            current = message.parent_id
        return tuple(reversed(path))

    def children(self, identifier: str | None) -> tuple[Message, ...]:
        """The messages that follow `identifier`; with None the beginnings."""
        return tuple(self._messages[child] for child in self._children.get(identifier, ()))

    def siblings(self, identifier: str) -> tuple[Message, ...]:
        """The messages with the same parent, the message itself among them."""
        return self.children(self._messages[identifier].parent_id)

    def newest_leaf(self) -> str | None:
        """The newest message that nothing follows; the newest of all where cycles leave no leaf."""
        leaves = [identifier for identifier in self._messages if not self._children.get(identifier)]
        return max(leaves or self._messages, default=None)
