"""A list of callbacks of one kind, which may change while it is being called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

_T = TypeVar("_T")


class Listeners(Generic[_T]):
    """Calls everyone who subscribed, in the order of subscription."""

    def __init__(self) -> None:
        self._listeners: list[Callable[[_T], None]] = []

    def subscribe(self, listener: Callable[[_T], None]) -> Callable[[], None]:
        """Call `listener` with every change from now on, until the function that comes back is called."""
        # A wrapper of its own, so that one function may subscribe twice and leave once.
        entry = lambda change: listener(change)  # noqa: E731
        self._listeners.append(entry)

        def unsubscribe() -> None:
            if entry in self._listeners:
                self._listeners.remove(entry)

        return unsubscribe

    def tell(self, change: _T) -> None:
        """Call everyone who is subscribed now."""
        for listener in tuple(self._listeners):
            listener(change)
