"""Energy of the processor from the counters that Linux shows under /sys/class/powercap (Intel and AMD, "RAPL")."""

from __future__ import annotations

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
        self._domains = [self._open(path) for path in self._packages(root)]
        if not self._domains:
            raise EnergyUnavailable("This machine has no energy counters (RAPL), or its system does not show them.")

    def joules(self) -> float:
        """Energy of all packages since the meter was made."""
        for domain in self._domains:
            now = self._number(domain.path / "energy_uj")
            # The counter may have begun again, once: it takes minutes to come round.
            self._total += now - domain.last if now >= domain.last else now + domain.wraps_at - domain.last
            domain.last = now
        return self._total / _MICROJOULES

    def _packages(self, root: Path) -> list[Path]:
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
        return _Domain(path, self._number(path / "max_energy_range_uj"), self._number(path / "energy_uj"))

    def _number(self, path: Path) -> int:
        text = self._text(path)
        if not text.isdigit():
            raise EnergyUnavailable(f"The energy counter {path} holds {text[:20]!r} and not a number.")
        return int(text)

    def _text(self, path: Path) -> str:
        try:
            return self._read(path).strip()
        except PermissionError as fault:
            raise EnergyUnavailable(
                f"The system lets only its administrator read the energy counters; `sudo chmod a+r {path}` allows it "
                "until the next start."
            ) from fault
        except (OSError, UnicodeDecodeError) as fault:
            raise EnergyUnavailable(f"The energy counter {path} cannot be read: {fault}.") from fault
