"""What one rendering of a chat template may cost: steps, time, and the size of all values that it makes.

Knows no templates. One operation on a string or list cannot be interrupted, so its result is paid for before it is made
wherever it can be larger than what it is made of.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

import jinja2

# A list longer than this is no conversation; comparing two nested ones is one operation that cannot be interrupted.
MAX_ELEMENTS = 50_000
_STEPS = 2_000_000
_SECONDS = 5.0
_SIZE = 8_000_000
# Templates copy their messages a few times on the way: trimmed, split, joined.
_SIZE_OF_INPUT = 32
_SMALL = 32


class TemplateTooCostly(jinja2.TemplateRuntimeError):
    """The template loops without end, or makes values without measure."""


class Budget:
    """Steps (turns of loops, calls, filters), seconds of this thread, and characters and elements of values made."""

    def __init__(self, input_size: int) -> None:
        self._steps = _STEPS
        self._size = _SIZE + _SIZE_OF_INPUT * input_size
        self._end = time.thread_time() + _SECONDS
        # By identity; the values are held, so that no other takes the place of one.
        self._measured: dict[int, tuple[Any, int]] = {}

    def step(self) -> None:
        """One more step."""
        self._steps -= 1
        if self._steps < 0:
            raise TemplateTooCostly("it takes too many steps")
        if time.thread_time() > self._end:
            raise TemplateTooCostly("it takes too long")

    def spend(self, size: int) -> None:
        """Pay for a value of so many characters or elements."""
        self._size -= size
        if self._size < 0:
            raise TemplateTooCostly("it makes too much text")

    def size_of(self, value: Any) -> int:
        """The size of a list or dict, which no template can change, measured once."""
        known = self._measured.get(id(value))
        if known is None:
            known = self._measured[id(value)] = (value, _measure(value))
        return known[1]


_budget: ContextVar[Budget] = ContextVar("octavo_template_budget")


def begin_budget(input_size: int) -> Budget:
    """Make the budget of this thread's next rendering; `input_size` is the characters that it is given."""
    budget = Budget(input_size)
    _budget.set(budget)
    return budget


def budget_now() -> Budget:
    """The budget of the rendering in progress; what is computed while a template is compiled gets a fresh one."""
    budget = _budget.get(None)
    return begin_budget(0) if budget is None else budget


def size_of(value: Any) -> int:
    """How long the text of a value is, nearly: characters, in nested lists and dicts too, counted where they recur.

    Raises:
        TemplateTooCostly: the value has more than `MAX_ELEMENTS` parts.
    """
    if isinstance(value, str):
        return len(value)
    if isinstance(value, list | tuple | dict):
        return budget_now().size_of(value)
    return _SMALL


def _measure(value: Any) -> int:
    size = 0
    rest = [value]
    left = MAX_ELEMENTS
    while rest:
        part = rest.pop()
        left -= 1
        if isinstance(part, str | bytes):
            size += len(part)
        elif isinstance(part, list | tuple | set | frozenset):
            _check_elements(left - len(part) - len(rest))
            rest.extend(part)
        elif isinstance(part, Mapping):
            _check_elements(left - 2 * len(part) - len(rest))
            rest.extend(part)
            rest.extend(part.values())
        size += _SMALL
    return size


def _check_elements(left: int) -> None:
    if left < 0:
        raise TemplateTooCostly(f"it makes a value of more than {MAX_ELEMENTS:,} parts")
