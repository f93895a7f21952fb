"""One chat: a title over a tree of messages. Plain values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

_TITLE_LENGTH = 48
NEW_TITLE = "New chat"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chat:
    """A chat without its messages.

    Attributes:
        created: UTC; `updated` is the time of the last question.
        leaf_id: the message at whose end the chat is shown; None while it is empty.
        system: the system prompt that goes before its messages; "" for none.
    """

    id: str
    title: str
    created: datetime
    updated: datetime
    leaf_id: str | None = None
    system: str = ""


def title_from(question: str) -> str:
    """A title out of a first question: its first line with words in it, cut at a word, at most 48 characters."""
    line = next((" ".join(line.split()) for line in question.splitlines() if line.strip()), NEW_TITLE)
    if len(line) <= _TITLE_LENGTH:
        return line
    # One character is left for the ellipsis; a first word longer than the title is cut inside.
    head = line[: _TITLE_LENGTH - 1]
    cut = head if line[_TITLE_LENGTH - 1] == " " else head.rpartition(" ")[0]
    return (cut.rstrip(" ,;:.-") or head) + "…"
