"""The repository as its tests see it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

# Used where the sources came without git: folders that a checkout gains by being used.
_MADE = {".venv", ".git", "dist", "build", "__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis"}


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository's root."""
    return Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def tracked_files(root: Path) -> tuple[Path, ...]:
    """Every file that belongs to the project, as absolute paths."""
    if (root / ".git").exists():
        command = ["git", "-c", f"safe.directory={root}", "ls-files", "-z"]
        listed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
        found = (root / name for name in listed.split("\0") if name)
    else:
        found = (path for path in root.rglob("*") if not _is_made(path.relative_to(root)))
    return tuple(sorted(path for path in found if path.is_file()))


def _is_made(path: Path) -> bool:
    return any(part in _MADE or part.endswith(".egg-info") for part in path.parts)
