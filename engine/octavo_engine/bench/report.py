"""What a run of benchmarks gives: figures, tables for people, goals, and what it was measured on. Plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from octavo_engine.bench.goal import Goal


@dataclass(frozen=True, slots=True)
class Table:
    """Rows for people; the first column is text, the others numbers as they are to be shown."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class PartResult:
    """One part of a suite.

    Attributes:
        name: what it is called on the command line.
        about: what was done, in a sentence.
        figures: everything measured, for programs and plots; JSON values only.
    """

    name: str
    about: str
    figures: Mapping[str, Any]
    tables: tuple[Table, ...]
    goals: tuple[Goal, ...]
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class BenchReport:
    """A whole run. `machine`: processor, cores, versions, model, date."""

    suite: str
    scale: str
    machine: Mapping[str, str]
    parts: tuple[PartResult, ...] = field(default=())

    @property
    def missed(self) -> tuple[Goal, ...]:
        """The goals that were not reached."""
        return tuple(goal for part in self.parts for goal in part.goals if not goal.is_met)

    @property
    def ok(self) -> bool:
        """Whether all goals were reached."""
        return not self.missed

    def as_dict(self) -> dict[str, Any]:
        """For JSON: suite, scale, ok, machine, and for each part its about, seconds, figures and goals by name.

        A goal has name, measured, comparison, bound, unit and met.
        """
        return {
            "suite": self.suite,
            "scale": self.scale,
            "ok": self.ok,
            "machine": dict(self.machine),
            "parts": {
                part.name: {
                    "about": part.about,
                    "seconds": round(part.seconds, 1),
                    "figures": dict(part.figures),
                    "goals": [asdict(goal) | {"met": goal.is_met} for goal in part.goals],
                }
                for part in self.parts
            },
        }


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> Table:
    """A table whose numbers are rounded for people: whole from 100 on, three digits below."""
    return Table(title, tuple(columns), tuple(tuple(_shown(value) for value in row) for row in rows))


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
