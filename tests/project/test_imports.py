"""A fresh interpreter that imports ours has not loaded the heavy libraries: the window is there before they are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("torch", "numba", "llvmlite", "transformers", "triton")


@pytest.mark.parametrize("package", ["octavo_engine", "octavo", "octavo_kernels"])
def test_import_is_light(package: str, tmp_path: Path) -> None:
    question = f"import sys, {package}; print([name for name in {HEAVY!r} if name in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", question], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.strip() == "[]"


@pytest.mark.parametrize("package", ["octavo_engine", "octavo_kernels"])
def test_nothing_below_the_application_loads_qt_or_a_database(package: str, tmp_path: Path) -> None:
    question = f"import sys, {package}; print([name for name in ('PySide6', 'sqlite3') if name in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", question], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.strip() == "[]"
