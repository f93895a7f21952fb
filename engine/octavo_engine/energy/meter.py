"""What an energy meter is, and which one this machine has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class EnergyUnavailable(Exception):
    """Energy cannot be read; the message is a sentence that says why."""


class EnergyMeter(Protocol):
    """Counts energy.

    Attributes:
        name: what counts, for people.
    """

    name: str

    def joules(self) -> float:
        """Energy in joules since the meter was made; never less than before.

        Raises:
            EnergyUnavailable: it cannot be read any more.
        """
        ...


@dataclass(frozen=True, slots=True)
class Unavailable:
    """There is no meter: a sentence that says why, and what can be done."""

    reason: str


def find_meter(kind: str) -> EnergyMeter | Unavailable:
    """The meter of a device of this kind: NVML for "cuda", RAPL for "cpu"."""
    from octavo_engine.energy.nvml import NvmlMeter
    from octavo_engine.energy.rapl import RaplMeter

    try:
        return NvmlMeter() if kind == "cuda" else RaplMeter()
    except EnergyUnavailable as fault:
        return Unavailable(str(fault))
