"""Energy of the processor from the counters that Linux shows under /sys/class/powercap (Intel and AMD, "RAPL").

Files and units: the Linux kernel's documentation, power/powercap/powercap.
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from octavo_engine.energy.meter import EnergyUnavailable

_ROOT = Path("/sys/class/powercap")
_MICROJOULES = 1_000_000
ReadText = Callable[[Path], str]


@dataclass(slots=True)
class _Domain:
    """A counter of microjoules that begins again at 0 behind `wraps_at`."""

    path: Path
    wraps_at: int
    last: int


class RaplMeter:
    """Adds up the processor packages. Cores, graphics and memory are parts of theirs and do not count twice."""

    name = "RAPL"

    def __init__(self, root: Path = _ROOT, read: ReadText = Path.read_text) -> None:
        """Find the packages below `root`; `read` gives a file's text.

        Raises:
            EnergyUnavailable: there are no counters, or they may not be read.
        """
        self._read = read
        self._total = 0
        self._packages: list[Path] = []
        self._packages = self._find(root)
        if not self._packages:
            raise EnergyUnavailable(_absent(root))
        self._domains = [self._open(path) for path in self._packages]

    def joules(self) -> float:
        """Energy of all packages since the meter was made.

        Raises:
            EnergyUnavailable: a counter is gone, may not be read any more, or holds nonsense.
        """
        for domain in self._domains:
            now = self._energy(domain.path, domain.wraps_at)
            # The counter may have begun again, once: it takes minutes to come round.
            self._total += now - domain.last if now >= domain.last else now + domain.wraps_at - domain.last
            domain.last = now
        return self._total / _MICROJOULES

    def _find(self, root: Path) -> list[Path]:
        """The folders of the packages, each once: some machines show them again through memory-mapped counters."""
        found: dict[str, Path] = {}
        for path in sorted(root.glob("intel-rapl*:*")):
            # Parts of a package have two numbers, intel-rapl:0:1.
            if path.name.count(":") != 1:
                continue
            name = self._text(path / "name")
            if name.startswith("package"):
                is_better = name not in found or not path.name.startswith("intel-rapl-mmio")
                found = {**found, name: path} if is_better else found
        return list(found.values())

    def _open(self, path: Path) -> _Domain:
        wraps_at = self._number(path / "max_energy_range_uj")
        return _Domain(path, wraps_at, self._energy(path, wraps_at))

    def _energy(self, path: Path, wraps_at: int) -> int:
        """Microjoules that a package's counter holds."""
        energy = self._number(path / "energy_uj")
        if energy > wraps_at:
            raise EnergyUnavailable(
                f"The energy counter of {path} holds {energy}, more than its range of {wraps_at}; it cannot be trusted."
            )
        return energy

    def _number(self, path: Path) -> int:
        text = self._text(path)
        # Without `isascii` a superscript two would be a digit that is no number.
        if not (text.isascii() and text.isdigit()):
            raise EnergyUnavailable(f"The energy counter {path} holds {text[:20]!r} and not a number.")
        return int(text)

    def _text(self, path: Path) -> str:
        try:
            return self._read(path).strip()
        except PermissionError as fault:
            # Linux 5.10 and newer: other programs' secrets can be guessed from the energy that they use.
            files = " ".join(f"{package}/energy_uj" for package in self._packages) or path
            raise EnergyUnavailable(
                f"The system lets only its administrator read the energy counters; `sudo chmod a+r {files}` allows it "
                "to every program until the next start."
            ) from fault
        except (OSError, UnicodeDecodeError) as fault:
            raise EnergyUnavailable(f"The energy counter {path} cannot be read: {fault}.") from fault


def _absent(root: Path) -> str:
    if platform.system() != "Linux":
        return (
            "Octavo can read a processor's energy counters (RAPL) on Linux only; a meter at the socket tells the power."
        )
    return (
        f"This machine shows no energy counters (RAPL) under {root}. On an Intel or AMD processor "
        "`sudo modprobe intel_rapl_msr` may bring them; a virtual machine seldom has any, there a meter at the socket "
        "of its host tells the power."
    )
