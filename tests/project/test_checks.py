"""The static checks are tests like any other."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(["ruff", "check", "."], id="ruff"),
        pytest.param(["ruff", "format", "--check", "."], id="format"),
        # Without a cache it reads PySide6, numpy and torch from the start.
        pytest.param(["mypy"], id="mypy", marks=pytest.mark.timeout(300)),
        pytest.param(["lint-imports"], id="imports"),
    ],
)
def test_check_finds_nothing(command: list[str], root: Path) -> None:
    program = Path(sysconfig.get_path("scripts"), command[0])
    done = subprocess.run([program, *command[1:]], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_checks_can_find_something(root: Path, tmp_path: Path) -> None:
    """The settings apply: a file with a print and an untyped function is refused by ruff and by mypy."""
    bad = tmp_path / "bad.py"
    bad.write_text("def f(x):\n    print(x)\n")
    scripts = Path(sysconfig.get_path("scripts"))
    config = root / "pyproject.toml"
    ruff = subprocess.run(
        [scripts / "ruff", "check", "--config", config, bad], capture_output=True, text=True, check=False
    )
    assert {"T201", "D103"} <= set(ruff.stdout.replace(":", " ").split())
    mypy = [sys.executable, "-m", "mypy", "--config-file", str(config), str(bad)]
    assert "no-untyped-def" in subprocess.run(mypy, capture_output=True, text=True, check=False, cwd=root).stdout


def test_every_source_file_is_of_a_readable_length(tracked_files: tuple[Path, ...]) -> None:
    lengths = {
        path: len(path.read_text(encoding="utf-8").splitlines()) for path in tracked_files if path.suffix == ".py"
    }
    assert {path.name: length for path, length in lengths.items() if length > 400} == {}
