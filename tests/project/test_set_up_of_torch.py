"""PyTorch's step says which build it will be and how many bytes, and installs only what is not in the hashed lock."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from octavo_dev.project_tree import ProjectTree
from octavo_dev.setup_error import SetupError
from octavo_dev.torch_build import TorchBuild

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the stand-in for the environment's Python is a shell script")

# Stands in for `python -m pip`: answers a dry run with the prepared report, and notes what else it was asked.
_STAND_IN = """#!/bin/sh
echo "$*" >> "{notes}"
report=
while [ $# -gt 0 ]; do
    if [ "$1" = --report ]; then report=$2; fi
    shift
done
if [ -n "$report" ]; then cp "{prepared}" "$report"; fi
"""


class _Usage(NamedTuple):
    total: int
    used: int
    free: int


def _tree(folder: Path, wheels: Sequence[tuple[str, str, int]]) -> ProjectTree:
    """A checkout whose pip would choose `wheels`: name, version, bytes."""
    tree = ProjectTree(folder)
    tree.python.parent.mkdir(parents=True)
    tree.torch_lock.parent.mkdir()
    tree.torch_lock.write_text("torch==9.9.9\n")
    tree.requirements_lock.write_text(
        "sympy==1.0 \\\n    --hash=sha256:aa\ntyping-extensions==4.0 \\\n    --hash=sha256:bb\n"
    )
    chosen = []
    for name, version, size in wheels:
        wheel = folder / f"{name}-{version}.whl"
        with wheel.open("wb") as file:
            file.truncate(size)
        chosen.append({"metadata": {"name": name, "version": version}, "download_info": {"url": wheel.as_uri()}})
    prepared = folder / "prepared.json"
    prepared.write_text(json.dumps({"install": chosen}))
    tree.python.write_text(_STAND_IN.format(notes=folder / "notes", prepared=prepared))
    tree.python.chmod(0o755)
    return tree


def test_cpu_build_is_announced_and_installed_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wheels = [("torch", "9.9.9+cpu", 200_000_000), ("sympy", "1.1", 10), ("typing_extensions", "4.1", 10)]
    step = TorchBuild(_tree(tmp_path, wheels))
    assert not step.is_done()
    step.run()
    assert "PyTorch 9.9.9+cpu, the CPU build: 200.0 MB (200,000,000 bytes) in 1 file\n" in capsys.readouterr().out
    resolved, installed = (tmp_path / "notes").read_text().splitlines()
    assert "--dry-run" in resolved
    assert installed.endswith("--no-deps torch==9.9.9+cpu")
    assert step.is_done()


def test_cuda_build_is_announced_with_all_that_it_brings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wheels = [
        ("torch", "9.9.9", 500_000),
        ("nvidia-cublas", "13.1", 400_000),
        ("triton", "3.7", 100_000),
        ("sympy", "1", 9),
    ]
    TorchBuild(_tree(tmp_path, wheels)).run()
    assert "the CUDA build: 1.0 MB (1,000,000 bytes) in 3 files" in capsys.readouterr().out
    installed = (tmp_path / "notes").read_text().splitlines()[-1]
    assert installed.endswith("--no-deps torch==9.9.9 nvidia-cublas==13.1 triton==3.7")


def test_installed_torch_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    step = TorchBuild(_tree(tmp_path, []))
    step.run()
    assert capsys.readouterr().out == ""
    assert len((tmp_path / "notes").read_text().splitlines()) == 1
    assert step.is_done()


def test_too_little_room_is_told_with_both_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda place: _Usage(10**10, 0, 3_000_000))
    step = TorchBuild(_tree(tmp_path, [("torch", "9.9.9", 1_000_000)]))
    with pytest.raises(SetupError, match=r"has 3\.0 MB free; PyTorch needs about 4\.0 MB"):
        step.run()
    assert not step.is_done()
    assert len((tmp_path / "notes").read_text().splitlines()) == 1


def test_another_release_makes_the_step_due_again(tmp_path: Path) -> None:
    tree = _tree(tmp_path, [])
    step = TorchBuild(tree)
    step.run()
    tree.torch_lock.write_text("torch==9.9.10\n")
    assert not step.is_done()
