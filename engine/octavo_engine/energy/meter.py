"""What an energy meter is, and which one this machine has."""

from __future__ import annotations

from collections.abc import Callable
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
    """The meter of a device of this kind, as in `DeviceInfo.kind`: NVML for "cuda", RAPL for "cpu". Never raises."""
    from octavo_engine.energy.nvml import NvmlMeter
    from octavo_engine.energy.rapl import RaplMeter

    meters: dict[str, Callable[[], EnergyMeter]] = {"cuda": NvmlMeter, "cpu": RaplMeter}
    if kind not in meters:
        return Unavailable(
            f"Octavo cannot read the energy of a device of kind {kind!r}, of {' and '.join(meters)} only."
        )
    try:
        return meters[kind]()
    except EnergyUnavailable as fault:
        return Unavailable(str(fault))
