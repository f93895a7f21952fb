"""Chooses an implementation for each operation: an ordered list, of which each may decline with a reason.

Implementations are modules, imported when they are first considered. Such a module holds a function named like the
operation and `declines(device) -> str | None`. Knows nothing of what the operations compute.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Implementation:
    """One way to compute an operation: the name that people read and the module that holds it."""

    name: str
    module: str


@dataclass(frozen=True, slots=True)
class Declined:
    """An implementation that was passed over, and why."""

    implementation: str
    reason: str


@dataclass(frozen=True, slots=True)
class Backend:
    """What computes an operation on a device, and what stood before it in the list."""

    operation: str
    device: str
    chosen: str
    declined: tuple[Declined, ...]


class Operation:
    """An operation's list of implementations, best first; the last one never declines."""

    def __init__(self, name: str, *implementations: Implementation) -> None:
        """Register the operation under `name`."""
        assert name not in _OPERATIONS, f"operation {name} is defined twice"
        self.name = name
        self.implementations = implementations
        self._chosen: dict[str, tuple[Callable[..., Any], Backend]] = {}
        _OPERATIONS[name] = self

    def on(self, device: str) -> Callable[..., Any]:
        """The function for tensors on `device` ("cpu", "cuda")."""
        chosen = self._chosen.get(device)
        if chosen is None:
            chosen = self._chosen[device] = self._choose(device)
        return chosen[0]

    def backend(self, device: str) -> Backend:
        """The choice for `device` and its reasons."""
        self.on(device)
        return self._chosen[device][1]

    def reset(self) -> None:
        """Choose again at the next call."""
        self._chosen.clear()

    def _choose(self, device: str) -> tuple[Callable[..., Any], Backend]:
        wanted = _FORCED.get(self.name)
        declined: list[Declined] = []
        for implementation in self.implementations:
            if wanted is not None and implementation.name != wanted:
                declined.append(Declined(implementation.name, f"{wanted} was asked for"))
                continue
            module = importlib.import_module(implementation.module)
            reason = module.declines(device)
            if reason is None:
                function: Callable[..., Any] = getattr(module, self.name)
                return function, Backend(self.name, device, implementation.name, tuple(declined))
            declined.append(Declined(implementation.name, reason))
        reasons = "; ".join(f"{entry.implementation}: {entry.reason}" for entry in declined)
        raise LookupError(f"nothing computes {self.name} on {device} ({reasons})")


_OPERATIONS: dict[str, Operation] = {}
_FORCED: dict[str, str] = {}


def backends(device: str = "cpu") -> tuple[Backend, ...]:
    """What computes each operation on `device`, and why; imports the implementations."""
    return tuple(operation.backend(device) for operation in _OPERATIONS.values())


@contextmanager
def forced(implementation: str, *operations: str) -> Iterator[None]:
    """Use `implementation` for `operations` (default: all) within the block. For tests and benchmarks: not thread-safe.

    Raises:
        KeyError: an operation that does not exist.
    """
    names = operations or tuple(_OPERATIONS)
    chosen = [_OPERATIONS[name] for name in names]
    before = dict(_FORCED)
    _FORCED.update(dict.fromkeys(names, implementation))
    for operation in chosen:
        operation.reset()
    try:
        yield
    finally:
        _FORCED.clear()
        _FORCED.update(before)
        for operation in chosen:
            operation.reset()
