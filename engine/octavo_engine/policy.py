"""Scheduling policies: in which order waiting sequences are admitted and who gives way. One small class each."""

from __future__ import annotations

from typing import Protocol

from octavo_engine.errors import InvalidRequest
from octavo_engine.sequence import Sequence

SortKey = tuple[int, ...]


class Policy(Protocol):
    """An order of sequences; the smallest key is admitted first, the largest gives way first."""

    name: str

    def key(self, sequence: Sequence) -> SortKey:
        """Sort key of a sequence."""
        ...


class FirstComeFirstServed:
    """In the order of arrival."""

    name = "fcfs"

    def key(self, sequence: Sequence) -> SortKey:
        """Order of arrival."""
        return (sequence.order,)


class ByPriority:
    """Higher priority first, then in the order of arrival."""

    name = "priority"

    def key(self, sequence: Sequence) -> SortKey:
        """Priority, highest first, then order of arrival."""
        return (-sequence.priority, sequence.order)


_POLICIES: dict[str, type[Policy]] = {policy.name: policy for policy in (FirstComeFirstServed, ByPriority)}


def policy_named(name: str) -> Policy:
    """The policy of that name.

    Raises:
        InvalidRequest: there is none.
    """
    if name not in _POLICIES:
        raise InvalidRequest(f"There is no scheduling policy {name!r}; choose one of {', '.join(_POLICIES)}.")
    return _POLICIES[name]()
