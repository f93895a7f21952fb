"""The two locks: exact, hashed, and silent about where packages come from."""

from __future__ import annotations

import importlib.metadata
import re
from pathlib import Path

from packaging.requirements import Requirement


def _entries(lock: Path) -> list[str]:
    """Logical lines without comments: `name==version ; marker --hash=… --hash=…`."""
    text = "\n".join(
        line for line in lock.read_text(encoding="utf-8").splitlines() if not line.lstrip().startswith("#")
    )
    return [" ".join(entry.split()) for entry in re.sub(r"\\\n", " ", text).splitlines() if entry.strip()]


def test_torch_is_locked_exactly_and_without_a_hash(root: Path) -> None:
    assert re.fullmatch(r"torch==\d+\.\d+\.\d+\n", (root / "packaging" / "torch.lock").read_text(encoding="utf-8"))


def test_every_requirement_is_exact_and_hashed(root: Path) -> None:
    for entry in _entries(root / "packaging" / "requirements.lock"):
        assert re.match(r"^[a-z0-9][a-z0-9.-]*==[^\s;]+", entry), entry
        assert re.search(r" --hash=sha256:[0-9a-f]{64}", entry), entry


def test_locks_name_no_place(root: Path) -> None:
    for lock in (root / "packaging").glob("*.lock"):
        for entry in _entries(lock):
            assert "://" not in entry
            assert not entry.startswith("-")


def test_nothing_locked_brings_torch_or_cuda(root: Path) -> None:
    names = {entry.split("==", 1)[0] for entry in _entries(root / "packaging" / "requirements.lock")}
    assert not {
        name for name in names if name in ("torch", "triton") or name.startswith(("nvidia-c", "nvidia-n", "cuda"))
    }


def test_what_is_installed_fits_together() -> None:
    """Every package's own requirements are met by what the locks install, torch's included."""
    unmet = []
    for installed in importlib.metadata.distributions():
        for text in installed.requires or ():
            need = Requirement(text)
            if need.marker is not None and not need.marker.evaluate({"extra": ""}):
                continue
            try:
                version = importlib.metadata.version(need.name)
            except importlib.metadata.PackageNotFoundError:
                unmet.append(f"{installed.name} needs {text}, which is not installed")
                continue
            if not need.specifier.contains(version, prereleases=True):
                unmet.append(f"{installed.name} needs {text}, installed is {version}")
    assert unmet == []
