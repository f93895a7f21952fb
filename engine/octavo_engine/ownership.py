"""Names of owners: paths like `chat/leaf`, where who is asked for includes those below it."""

from __future__ import annotations


def belongs_to(name: str, owner: str) -> bool:
    """Whether `name` is `owner` or lies below it: `chat/leaf` belongs to `chat`."""
    return name == owner or name.startswith(f"{owner}/")
