"""RAPL as recorded from real machines: packages with their parts, a system-wide domain, a second view of a package."""

import platform
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

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


def test_a_part_that_goes_away_does_not_matter(sysfs: Sysfs) -> None:
    (sysfs.root / "intel-rapl:0:1" / "name").unlink()
    assert RaplMeter(sysfs.root).joules() == 0.0


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


def test_entries_may_be_links_as_in_sysfs(sysfs: Sysfs, tmp_path_factory: pytest.TempPathFactory) -> None:
    root = tmp_path_factory.mktemp("class")
    for path in sysfs.root.iterdir():
        (root / path.name).symlink_to(path)
    meter = RaplMeter(root)
    sysfs.set("intel-rapl:0", 251_500_000)
    assert meter.joules() == 1.5


@pytest.mark.parametrize(("system", "words"), [("Linux", "sudo modprobe intel_rapl_msr"), ("Windows", "on Linux only")])
def test_without_counters_the_reason_says_what_helps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, system: str, words: str
) -> None:
    monkeypatch.setattr(platform, "system", lambda: system)
    for root in (tmp_path, tmp_path / "none"):
        with pytest.raises(EnergyUnavailable, match=words) as caught:
            RaplMeter(root)
        assert "administrator" not in str(caught.value)


def test_without_permission_the_reason_names_the_packages_files(sysfs: Sysfs) -> None:
    """All of them, and no part's: they are what the user is asked to open to every program."""
    sysfs.add("intel-rapl:2", "package-1", 7)

    def read(path: Path) -> str:
        if path.name == "energy_uj":
            raise PermissionError(13, "Permission denied", str(path))
        return path.read_text()

    with pytest.raises(EnergyUnavailable, match="administrator") as caught:
        RaplMeter(sysfs.root, read)
    files = f"{sysfs.root}/intel-rapl:0/energy_uj {sysfs.root}/intel-rapl:2/energy_uj"
    assert f"`sudo chmod a+r {files}`" in str(caught.value)


def test_a_folder_that_may_not_be_entered_is_named(sysfs: Sysfs) -> None:
    def read(path: Path) -> str:
        raise PermissionError(13, "Permission denied", str(path))

    with pytest.raises(EnergyUnavailable, match=r"sudo chmod a\+r /.*/name`"):
        RaplMeter(sysfs.root, read)


def test_permission_may_be_taken_away_later(sysfs: Sysfs) -> None:
    allowed = [True]

    def read(path: Path) -> str:
        if not allowed[0]:
            raise PermissionError(13, "Permission denied", str(path))
        return path.read_text()

    meter = RaplMeter(sysfs.root, read)
    allowed[0] = False
    with pytest.raises(EnergyUnavailable, match="administrator"):
        meter.joules()


# The superscript two is a digit to Python and no number.
@pytest.mark.parametrize("content", ["", "garbage", "-3", "12.5", "\u00b2"])
def test_a_counter_that_is_no_number_is_unavailable(sysfs: Sysfs, content: str) -> None:
    meter = RaplMeter(sysfs.root)
    sysfs.set("intel-rapl:0", content)
    with pytest.raises(EnergyUnavailable, match="not a number"):
        meter.joules()


@given(energy=st.text(max_size=8) | st.integers(0, 2000).map(str), wraps_at=st.just("999") | st.text(max_size=3))
def test_whatever_the_files_hold_energy_grows_or_is_unavailable(energy: str, wraps_at: str) -> None:
    with TemporaryDirectory() as folder:
        sysfs = Sysfs(Path(folder))
        sysfs.add("intel-rapl:0", "package-0", 5)
        texts = {"name": "package-0", "energy_uj": energy, "max_energy_range_uj": wraps_at}
        try:
            meter = RaplMeter(sysfs.root, lambda path: texts[path.name])
            before = meter.joules()
            texts["energy_uj"] = "1"
            assert meter.joules() >= before == 0.0
        except EnergyUnavailable:
            # Any other error would end the engine's thread.
            assert not (energy.isdecimal() and energy.isascii() and wraps_at == "999" and int(energy) <= 999)


def test_a_counter_beyond_its_range_is_not_trusted(sysfs: Sysfs) -> None:
    meter = RaplMeter(sysfs.root)
    sysfs.set("intel-rapl:0", RANGE)
    assert meter.joules() > 0
    sysfs.set("intel-rapl:0", RANGE + 1)
    with pytest.raises(EnergyUnavailable, match="cannot be trusted"):
        meter.joules()


def test_bytes_that_are_no_text_are_unavailable(sysfs: Sysfs) -> None:
    meter = RaplMeter(sysfs.root)
    (sysfs.root / "intel-rapl:0" / "energy_uj").write_bytes(b"\xff\xfe")
    with pytest.raises(EnergyUnavailable, match="cannot be read"):
        meter.joules()


def test_a_counter_that_goes_away_is_unavailable(sysfs: Sysfs) -> None:
    meter = RaplMeter(sysfs.root)
    (sysfs.root / "intel-rapl:0" / "energy_uj").unlink()
    with pytest.raises(EnergyUnavailable, match="cannot be read"):
        meter.joules()
