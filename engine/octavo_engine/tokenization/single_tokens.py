"""Finds the tokens that are taken whole, control and user-defined ones, in a text. Knows no merges and no templates."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping


class SingleTokens:
    """The texts of some tokens, found leftmost first; where several begin, the longest wins."""

    def __init__(self, tokens: Mapping[str, int]) -> None:
        self._ids = {text: token for text, token in tokens.items() if text}
        lengths: dict[str, set[int]] = {}
        seconds: dict[str, set[str]] = {}
        for text in self._ids:
            lengths.setdefault(text[0], set()).add(len(text))
            seconds.setdefault(text[0], set()).add(text[1:2])
        self._lengths = {first: tuple(sorted(found, reverse=True)) for first, found in lengths.items()}
        self._longest = max(map(len, self._ids), default=0)
        self._candidate = re.compile("|".join(_beginning(*item) for item in seconds.items()) or r"(?!)")
        self._beginnings: frozenset[str] | None = None

    def __contains__(self, text: str) -> bool:
        return text in self._ids

    def at(self, text: str, position: int) -> str | None:
        """The token that begins at this place, if one does."""
        for length in self._lengths.get(text[position : position + 1], ()):
            if (found := text[position : position + length]) in self._ids:
                return found
        return None

    def ends(self, text: str) -> bool:
        """Whether the text ends with one of the tokens."""
        lengths = {length for lengths in self._lengths.values() for length in lengths}
        return any(text[-length:] in self._ids for length in lengths if length <= len(text))

    def split(self, text: str) -> Iterator[str | int]:
        """The text in order: tokens as ids, what stands between as texts that are not empty."""
        start = position = 0
        while candidate := self._candidate.search(text, position):
            position = candidate.start()
            found = self.at(text, position)
            if found is None:
                position += 1
                continue
            if start < position:
                yield text[start:position]
            yield self._ids[found]
            start = position = position + len(found)
        if start < len(text):
            yield text[start:]

    def guarded(self, text: str, guard: str) -> str:
        """The text with `guard` inside each token that it spells, or begins to spell at its end."""
        parts: list[str] = []
        start = position = 0
        while candidate := self._candidate.search(text, position):
            position = candidate.start() + 1
            if self.at(text, position - 1) is not None:
                parts += [text[start:position], guard]
                start = position
        tail = text[start:]
        for length in range(min(self._longest, len(tail)), 0, -1):
            if self._begins(tail[-length:]):
                cut = len(tail) - length + 1
                tail = tail[:cut] + guard + tail[cut:]
                break
        return "".join([*parts, tail])

    def _begins(self, text: str) -> bool:
        if text[:1] not in self._lengths:
            return False
        if self._beginnings is None:
            self._beginnings = frozenset(known[:end] for known in self._ids for end in range(1, len(known)))
        return text in self._beginnings


def _beginning(first: str, seconds: set[str]) -> str:
    if "" in seconds:
        return re.escape(first)
    return re.escape(first) + "[" + "".join(map(re.escape, sorted(seconds))) + "]"
