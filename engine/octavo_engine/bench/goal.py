"""What a benchmark is to reach: a measured value beside its bound."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Literal

Comparison = Literal["<", "<=", ">="]
_HOLDS = {"<": operator.lt, "<=": operator.le, ">=": operator.ge}


@dataclass(frozen=True, slots=True)
class Goal:
    """A goal: `measured` `comparison` `bound`, both in `unit`."""

    name: str
    measured: float
    comparison: Comparison
    bound: float
    unit: str = ""

    @property
    def is_met(self) -> bool:
        """Whether it is reached."""
        return bool(_HOLDS[self.comparison](self.measured, self.bound))
