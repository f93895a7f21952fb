"""The private tree starts from another folder that cannot be written, and writes nowhere but in OCTAVO_HOME."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest

from octavo_tree.closure import needed_distributions
from octavo_tree.launcher import write_launcher


def test_closure_has_what_octavo_needs_and_no_test_tools() -> None:
    names = {found.name.lower().replace("_", "-") for found in needed_distributions("octavo")}
    assert {
        "torch",
        "transformers",
        "pyside6-essentials",
        "shiboken6",
        "numpy",
        "llvmlite",
        "markupsafe",
        "sympy",
    } <= names
    assert not {"pytest", "mypy", "ruff", "gguf", "hypothesis"} & names
    assert distribution("octavo").name not in names


def test_launcher_finds_its_folder_through_a_link_and_spaces(tmp_path: Path) -> None:
    tree = tmp_path / "a folder with spaces"
    (tree / "bin").mkdir(parents=True)
    launcher = write_launcher(tree, "stand-in")
    stand_in = tree / "bin" / "stand-in"
    stand_in.write_text('#!/bin/sh\nprintf "%s|" "$@"\n')
    stand_in.chmod(0o755)
    link = tmp_path / "octavo"
    link.symlink_to(launcher)
    done = subprocess.run([link, "chat", "--prompt", "two words"], capture_output=True, text=True, check=True)
    assert done.stdout == f"-I|-B|{tree / 'start.py'}|chat|--prompt|two words|"


@pytest.fixture(scope="module")
def read_only_tree(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The tree, assembled in one folder, moved to another and mounted read-only."""
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("a read-only mount needs root on Linux: for root every folder is writable otherwise")
    folder = tmp_path_factory.mktemp("private")
    made = folder / "made" / "octavo-tree"
    moved = folder / "moved elsewhere"
    mounted = folder / "mounted"
    mounted.mkdir()
    subprocess.run([sys.executable, root / "packaging" / "dev.py", "package", "--into", made], check=True)
    made.rename(moved)
    subprocess.run(["mount", "--bind", moved, mounted], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", mounted], check=True)
        yield mounted
    finally:
        subprocess.run(["umount", mounted], check=True)
        shutil.rmtree(moved)


class _Machine:
    """A user's folders, all empty at first."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.temporary = folder / "tmp"
        self.octavo_home = folder / "octavo-data"
        self.working = folder / "working"
        for place in (self.home, self.temporary, self.working):
            place.mkdir()

    def octavo(self, tree: Path, *arguments: str) -> dict[str, Any]:
        """Run the tree's program; the object that it printed."""
        environment = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(self.home),
            "TMPDIR": str(self.temporary),
            "OCTAVO_HOME": str(self.octavo_home),
            "LANG": "C.UTF-8",
        }
        done = subprocess.run(
            [tree / "octavo", *arguments],
            env=environment,
            cwd=self.working,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    def strays(self) -> list[Path]:
        """Files outside OCTAVO_HOME."""
        places = (self.home, self.temporary, self.working)
        return [path for place in places for path in place.rglob("*")]


@pytest.mark.long
@pytest.mark.timeout(600)
def test_private_tree_runs_read_only_and_writes_only_its_home(read_only_tree: Path, tmp_path: Path) -> None:
    machine = _Machine(tmp_path)
    report = machine.octavo(read_only_tree, "doctor", "--json")
    assert report
    answer = machine.octavo(
        read_only_tree,
        "chat", "--json", "--prompt", "What is the capital of France?", "--temperature", "0", "--max-tokens", "32",
    )  # fmt: skip
    assert "Paris" in answer["text"]
    assert machine.strays() == []


@pytest.mark.long
@pytest.mark.timeout(600)
def test_private_tree_brings_its_compiled_kernels(read_only_tree: Path, tmp_path: Path) -> None:
    """Nothing is compiled on the first start: the home has no compiled files after an answer."""
    machine = _Machine(tmp_path)
    machine.octavo(read_only_tree, "chat", "--json", "--prompt", "Hello", "--max-tokens", "4")
    compiled = [path for path in machine.octavo_home.rglob("*") if path.suffix in (".nbc", ".nbi", ".so", ".o")]
    assert compiled == []
