"""What the sub-commands of `packaging/dev.py` do once the set-up is done. Each returns an exit code."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from octavo_dev.display import has_display
from octavo_dev.long_report import read_results, write_report
from octavo_dev.project_tree import ProjectTree
from octavo_dev.setup_error import SetupError

_SUB_COMMANDS = ("bench", "chat", "chats", "doctor", "models", "serve")


def run(tree: ProjectTree, arguments: Sequence[str]) -> int:
    """Start Octavo in place of this process; in the terminal where no window can be shown."""
    octavo = tree.program("octavo")
    if not has_display() and not (arguments and arguments[0] in _SUB_COMMANDS):
        print("No display here (DISPLAY and WAYLAND_DISPLAY are empty), so Octavo talks in this terminal.", flush=True)
        arguments = ["chat", *arguments]
    command = [str(octavo), *arguments]
    if os.name != "nt":
        os.execv(octavo, command)
    # Windows' exec gives the prompt back before the program ends.
    return subprocess.call(command)


def test(tree: ProjectTree, arguments: Sequence[str], *, long: bool) -> int:
    """Run the tests; with `long` also those that take minutes, and write their page."""
    command = [str(tree.program("pytest")), "--durations=10", *arguments]
    if not long:
        return subprocess.call(command, cwd=tree.root)
    with tempfile.TemporaryDirectory(prefix="octavo-") as folder:
        junit = Path(folder, "results.xml")
        code = subprocess.call([*command, "-m", "", f"--junitxml={junit}"], cwd=tree.root)
        if not junit.exists():
            return code
        page = tree.root / "docs" / "benchmarks" / "long-tests.md"
        write_report(read_results(junit), page, tree.root)
    print(f"The results are in {page.relative_to(tree.root)}.", flush=True)
    return code


def check(tree: ProjectTree) -> int:
    """Run every static check, all of them even when one fails."""
    commands = (
        ["ruff", "check", "."],
        ["ruff", "format", "--check", "."],
        ["mypy"],
        ["lint-imports"],
    )
    failed = []
    for name, *rest in commands:
        print(f"$ {' '.join((name, *rest))}", flush=True)
        if subprocess.call([str(tree.program(name)), *rest], cwd=tree.root) != 0:
            failed.append(name)
    if failed:
        print(f"Found something: {', '.join(failed)}.", file=sys.stderr)
    return 1 if failed else 0


def bench(tree: ProjectTree, arguments: Sequence[str]) -> int:
    """Run Octavo's own measurements."""
    return subprocess.call([str(tree.program("octavo")), "bench", *arguments], cwd=tree.root)


def package(tree: ProjectTree, target: Path) -> int:
    """Assemble the private tree in `target`. Raises SetupError."""
    environment = {**os.environ, "PYTHONPATH": str(tree.root / "packaging")}
    command = [str(tree.python), "-m", "octavo_tree", str(tree.root), str(target)]
    done = subprocess.run(command, env=environment, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or [f"code {done.returncode}"])[-1]
        raise SetupError(
            f"The folder {target} could not be assembled: {last}",
            "It takes about 1.5 GB; see that the disk has room and run the same command again.",
        )
    print(f"{target} is ready: start {target / 'octavo'}, there or wherever you move it.")
    return 0
