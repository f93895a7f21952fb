"""Scheduling policies: in which order waiting sequences are admitted and who gives way. One small class each."""

from __future__ import annotations

from typing import Protocol

from octavo_engine.errors import InvalidRequest
from octavo_engine.sequence import Sequence

SortKey = tuple[float, ...]

# Work that an answer without a limit is expected to be, in tokens.
_EXPECTED_TOKENS = 256
# Tokens of work that a second of waiting makes up for, so that nobody starves behind shorter jobs.
_AGEING = 32.0


class Policy(Protocol):
    """An order of sequences; the smallest key is admitted first, the largest gives way first."""

    name: str

    def key(self, sequence: Sequence) -> SortKey:
        """Sort key of a sequence."""
        ...

    def outranks(self, waiting: Sequence, running: Sequence) -> bool:
        """Whether a running sequence has to give its place or its pages to a waiting one."""
        ...


class FirstComeFirstServed:
    """In the order of arrival."""

    name = "fcfs"

    def key(self, sequence: Sequence) -> SortKey:
        """Order of arrival."""
        return (sequence.order,)

    def outranks(self, waiting: Sequence, running: Sequence) -> bool:
        """Never."""
        return False


class ByPriority:
    """Higher priority first, then in the order of arrival."""

    name = "priority"

    def key(self, sequence: Sequence) -> SortKey:
        """Priority, highest first, then order of arrival."""
        return (-sequence.priority, sequence.order)

    def outranks(self, waiting: Sequence, running: Sequence) -> bool:
        """Where its priority is higher."""
        return waiting.priority > running.priority


class ShortestJobFirst:
    """Least expected work first: tokens still to compute and to draw, less what waiting has earned.

    Everybody ages at the same rate, so that the time of submission stands for the age and the order of two sequences
    changes only with the work that they have done.
    """

    name = "sjf"

    def key(self, sequence: Sequence) -> SortKey:
        """Expected work in tokens plus the time of submission in tokens, then order of arrival."""
        limit = sequence.sampling.max_tokens
        output = _EXPECTED_TOKENS if limit is None else limit
        work = sequence.remaining + max(0, output - sequence.own_length)
        return (work + _AGEING * sequence.submitted, sequence.order)

    def outranks(self, waiting: Sequence, running: Sequence) -> bool:
        """Never: what a running sequence has computed is not given up for a shorter one."""
        return False


_POLICIES: dict[str, type[Policy]] = {
    policy.name: policy for policy in (FirstComeFirstServed, ShortestJobFirst, ByPriority)
}


def policy_named(name: str) -> Policy:
    """The policy of that name.

    Raises:
        InvalidRequest: there is none.
    """
    if name not in _POLICIES:
        raise InvalidRequest(f"There is no scheduling policy {name!r}; choose one of {', '.join(_POLICIES)}.")
    return _POLICIES[name]()
