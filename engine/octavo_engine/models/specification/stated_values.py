"""What a model's files state about it, number by number; nothing is believed. Loads no torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np

from octavo_engine.errors import ModelLoadError

_Number = TypeVar("_Number", int, float)


class StatedValues:
    """Entries of a metadata block or of a configuration file."""

    def __init__(self, entries: Mapping[str, Any], *, source: str, prefix: str = "") -> None:
        """Look at those `entries` whose keys begin with `prefix`; `source` names the file in sentences."""
        self._entries = entries
        self._source = source
        self._prefix = prefix

    def get(self, key: str) -> Any:
        """Whatever stands there, or None. A list of equal numbers, one for each layer, counts as that number."""
        value = self._entries.get(self._prefix + key)
        if isinstance(value, np.ndarray) and value.size and value.dtype.kind in "iuf" and (value == value[0]).all():
            return value[0].item()
        return value

    def number(self, key: str, kind: type[_Number], default: _Number | None = None) -> _Number:
        """A positive number; where it is missing, the default. int stands for both kinds."""
        value = self.get(key)
        value = default if value is None else value
        if value is None:
            raise ModelLoadError(f"{self._source} does not state {self._prefix}{key}. Get another copy of this model.")
        if isinstance(value, bool) or not isinstance(value, int | kind) or not 0 < value < 1 << 31:
            raise self.wrong(key)
        return kind(value)

    def optional(self, key: str, kind: type[_Number]) -> _Number | None:
        """A positive number, or None where it is missing, null or 0."""
        value = self.get(key)
        return None if value is None or (isinstance(value, int | float) and value == 0) else self.number(key, kind)

    def numbers(self, key: str, count: int) -> tuple[float, ...]:
        """So many positive numbers."""
        values = self.get(key)
        if not isinstance(values, list) or len(values) != count:
            raise self.wrong(key)
        return tuple(StatedValues({key: value}, source=self._source).number(key, float) for value in values)

    def text(self, key: str) -> str:
        """A text, or an empty one where it is missing."""
        value = self.get(key)
        if value is not None and not isinstance(value, str):
            raise self.wrong(key)
        return value or ""

    def flags(self, key: str, count: int) -> tuple[bool, ...] | None:
        """A boolean for each layer, or None where they are missing."""
        value = self._entries.get(self._prefix + key)
        if isinstance(value, np.ndarray | list) and len(value) == count:
            return tuple(bool(entry) for entry in value)
        return None

    def wrong(self, key: str) -> ModelLoadError:
        """What is said of an entry that cannot be."""
        return ModelLoadError(
            f"{self._source} states {self._prefix}{key} = {shown(self.get(key))}, which this Octavo cannot run. "
            "Get another copy of this model."
        )


def shown(value: object) -> str:
    """A value in a sentence, whatever its length."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"
