"""RAPL as recorded from real machines: packages with their parts, a system-wide domain, a second view of a package."""

from pathlib import Path

import pytest

from octavo_engine.energy.meter import EnergyUnavailable
from octavo_engine.energy.rapl import RaplMeter

RANGE = 262_143_328_850


class Sysfs:
    """A tree like /sys/class/powercap."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def add(self, folder: str, name: str, energy: int, wraps_at: int = RANGE) -> None:
        path = self.root / folder
        path.mkdir()
        (path / "name").write_text(f"{name}\n")
        (path / "max_energy_range_uj").write_text(f"{wraps_at}\n")
        (path / "energy_uj").write_text(f"{energy}\n")

    def set(self, folder: str, energy: int | str) -> None:
        (self.root / folder / "energy_uj").write_text(f"{energy}\n")


@pytest.fixture
def sysfs(tmp_path: Path) -> Sysfs:
    """A laptop: one package with its cores and graphics, the same package through memory, and the whole system."""
    sysfs = Sysfs(tmp_path)
    (tmp_path / "intel-rapl").mkdir()
    sysfs.add("intel-rapl:0", "package-0", 250_000_000)
    sysfs.add("intel-rapl:0:0", "core", 90_000_000)
    sysfs.add("intel-rapl:0:1", "uncore", 5_000_000)
    sysfs.add("intel-rapl:1", "psys", 900_000_000)
    sysfs.add("intel-rapl-mmio:0", "package-0", 251_000_000)
    return sysfs


def test_only_the_package_counts_and_only_once(sysfs: Sysfs) -> None:
    meter = RaplMeter(sysfs.root)
    assert meter.joules() == 0.0
    for folder, energy in (
        ("intel-rapl:0", 252_500_000),
        ("intel-rapl:0:0", 99_000_000),
        ("intel-rapl:1", 999_000_000),
        ("intel-rapl-mmio:0", 260_000_000),
    ):
        sysfs.set(folder, energy)
    assert meter.joules() == 2.5


def test_the_counter_may_come_round(sysfs: Sysfs) -> None:
    sysfs.set("intel-rapl:0", RANGE - 1_000_000)
    meter = RaplMeter(sysfs.root)
    sysfs.set("intel-rapl:0", 3_000_000)
    assert meter.joules() == 4.0
    sysfs.set("intel-rapl:0", 4_000_000)
    assert meter.joules() == 5.0


def test_several_processors_are_added_up(sysfs: Sysfs) -> None:
    sysfs.add("intel-rapl:2", "package-1", 7_000_000, wraps_at=10_000_000)
    meter = RaplMeter(sysfs.root)
    sysfs.set("intel-rapl:0", 251_000_000)
    sysfs.set("intel-rapl:2", 1_000_000)
    assert meter.joules() == 1.0 + 4.0


def test_a_package_that_only_memory_shows_counts(tmp_path: Path) -> None:
    sysfs = Sysfs(tmp_path)
    sysfs.add("intel-rapl-mmio:0", "package-0", 1)
    meter = RaplMeter(tmp_path)
    sysfs.set("intel-rapl-mmio:0", 1_000_001)
    assert meter.joules() == 1.0


def test_without_counters_there_is_a_reason(tmp_path: Path) -> None:
    for root in (tmp_path, tmp_path / "none"):
        with pytest.raises(EnergyUnavailable, match="no energy counters"):
            RaplMeter(root)


def test_without_permission_the_reason_says_what_helps(sysfs: Sysfs) -> None:
    def read(path: Path) -> str:
        if path.name == "energy_uj":
            raise PermissionError(13, "Permission denied", str(path))
        return path.read_text()

    with pytest.raises(EnergyUnavailable, match=r"administrator.*sudo chmod a\+r .*intel-rapl:0/energy_uj"):
        RaplMeter(sysfs.root, read)


@pytest.mark.parametrize("content", ["", "garbage", "-3", "12.5"])
def test_a_counter_that_is_no_number_is_unavailable(sysfs: Sysfs, content: str) -> None:
    meter = RaplMeter(sysfs.root)
    sysfs.set("intel-rapl:0", content)
    with pytest.raises(EnergyUnavailable, match="not a number"):
        meter.joules()


def test_a_counter_that_goes_away_is_unavailable(sysfs: Sysfs) -> None:
    meter = RaplMeter(sysfs.root)
    (sysfs.root / "intel-rapl:0" / "energy_uj").unlink()
    with pytest.raises(EnergyUnavailable, match="cannot be read"):
        meter.joules()
