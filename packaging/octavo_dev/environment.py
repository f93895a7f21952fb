"""The virtual environment and what pip puts into it: one step for each. Nothing here knows an index."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from octavo_dev.pip import Pip
from octavo_dev.progress import human_bytes
from octavo_dev.project_tree import ProjectTree
from octavo_dev.setup_error import SetupError, disk_error
from octavo_dev.stamp import Stamp, fingerprint
from octavo_dev.wheel_size import total_bytes

# pip itself, and what builds the project in place: needed before the long list.
_TOOLS = ("pip", "setuptools", "wheel")
# Bytes that an environment with nothing but pip takes.
_SMALLEST_ENVIRONMENT = 30_000_000


def python_version() -> str:
    """Version of the running interpreter, which becomes the environment's."""
    return ".".join(str(part) for part in sys.version_info[:3])


def _pip(tree: ProjectTree) -> Pip:
    return Pip(tree.python, tree.pip_log)


@dataclass(frozen=True, slots=True)
class Environment:
    """The empty virtual environment."""

    tree: ProjectTree
    title: str = "Python environment"

    @property
    def stamp(self) -> Stamp:
        """Mark of this step."""
        return Stamp(self.tree.stamps / "environment")

    def key(self) -> str:
        """An environment cannot be moved, and serves one minor version of Python."""
        return fingerprint(str(self.tree.root), f"{sys.version_info.major}.{sys.version_info.minor}")

    def is_done(self) -> bool:
        """Whether the environment is there and whole."""
        return self.stamp.matches(self.key()) and self.tree.python.exists()

    def run(self) -> None:
        """Adopt an environment that works, or make a new one. Raises SetupError."""
        if not self._works():
            print(f"      Python {python_version()} in {self.tree.environment}", flush=True)
            command = [sys.executable, "-m", "venv", "--clear", str(self.tree.environment)]
            made = subprocess.run(command, capture_output=True, text=True, check=False)
            if made.returncode != 0:
                words = (made.stdout + made.stderr).strip().splitlines() or ["no message"]
                # venv hides what its inner pip said, so the disk itself is asked.
                if shutil.disk_usage(self.tree.root).free < _SMALLEST_ENVIRONMENT:
                    raise disk_error(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), self.tree.environment)
                raise SetupError(
                    f"A virtual environment could not be made: {words[-1]}",
                    "Look at that, delete the folder .venv, and run the same command again.",
                )
        self.stamp.write(self.key())

    def _works(self) -> bool:
        if not self.tree.python.exists():
            return False
        question = "import pip, sys; print(*sys.version_info[:2], sys.prefix)"
        answer = subprocess.run([self.tree.python, "-c", question], capture_output=True, text=True, check=False)
        expected = f"{sys.version_info.major} {sys.version_info.minor} {self.tree.environment}"
        return answer.returncode == 0 and answer.stdout.strip() == expected


@dataclass(frozen=True, slots=True)
class Tools:
    """pip, setuptools and wheel in their locked versions: the machine's own pip may be years old."""

    tree: ProjectTree
    title: str = "pip"

    @property
    def stamp(self) -> Stamp:
        """Mark of this step."""
        return Stamp(self.tree.stamps / "tools")

    def key(self) -> str:
        """The locked lines and the environment."""
        return fingerprint(locked_lines(self.tree.requirements_lock, _TOOLS), Environment(self.tree).key())

    def is_done(self) -> bool:
        """Whether these versions are installed."""
        return self.stamp.matches(self.key())

    def run(self) -> None:
        """Install them. Raises SetupError."""
        with tempfile.TemporaryDirectory(prefix="octavo-") as folder:
            lines = Path(folder, "tools.lock")
            lines.write_text(locked_lines(self.tree.requirements_lock, _TOOLS), encoding="utf-8")
            _pip(self.tree).install("--require-hashes", "--no-deps", "--requirement", str(lines), raw_progress=False)
        self.stamp.write(self.key())


@dataclass(frozen=True, slots=True)
class Torch:
    """PyTorch, whose build (CPU or CUDA) depends on the machine's index: exact version, no hash."""

    tree: ProjectTree
    title: str = "PyTorch"

    @property
    def stamp(self) -> Stamp:
        """Mark of this step."""
        return Stamp(self.tree.stamps / "torch")

    def key(self) -> str:
        """The locked release and the environment."""
        return fingerprint(self.tree.torch_lock, Environment(self.tree).key())

    def is_done(self) -> bool:
        """Whether this release is installed."""
        return self.stamp.matches(self.key())

    def run(self) -> None:
        """Say which build it will be and how large, then install it with what only it brings. Raises SetupError."""
        pip = _pip(self.tree)
        with tempfile.TemporaryDirectory(prefix="octavo-") as folder:
            chosen = pip.resolve("--requirement", str(self.tree.torch_lock), report=Path(folder, "report.json"))
        locked = locked_names(self.tree.requirements_lock)
        own = [wheel for wheel in chosen if wheel.name.lower().replace("_", "-") not in locked]
        if own:
            torch = next((wheel for wheel in own if wheel.name == "torch"), own[0])
            build = "CUDA" if any(wheel.name.startswith("nvidia") for wheel in own) else "CPU"
            size = total_bytes(own, self.tree.environment)
            amount = "an unknown number of bytes" if size is None else f"{human_bytes(size)} ({size:,} bytes)"
            files = "1 file" if len(own) == 1 else f"{len(own)} files"
            print(f"      PyTorch {torch.version}, the {build} build: {amount} in {files}", flush=True)
            _require_room(size or 0, self.tree.environment)
            pip.install("--no-deps", *(f"{wheel.name}=={wheel.version}" for wheel in own))
        self.stamp.write(self.key())


@dataclass(frozen=True, slots=True)
class Requirements:
    """Every other package, exactly as locked."""

    tree: ProjectTree
    title: str = "Libraries"

    @property
    def stamp(self) -> Stamp:
        """Mark of this step."""
        return Stamp(self.tree.stamps / "requirements")

    def key(self) -> str:
        """The lock and the environment."""
        return fingerprint(self.tree.requirements_lock, Environment(self.tree).key())

    def is_done(self) -> bool:
        """Whether the lock is installed."""
        return self.stamp.matches(self.key())

    def run(self) -> None:
        """Install the lock. Raises SetupError."""
        _pip(self.tree).install("--require-hashes", "--no-deps", "--requirement", str(self.tree.requirements_lock))
        self.stamp.write(self.key())


@dataclass(frozen=True, slots=True)
class Project:
    """Octavo itself, in place: a changed source file needs no new set-up."""

    tree: ProjectTree
    title: str = "Octavo"

    @property
    def stamp(self) -> Stamp:
        """Mark of this step."""
        return Stamp(self.tree.stamps / "project")

    def key(self) -> str:
        """The metadata and the environment."""
        return fingerprint(self.tree.root / "pyproject.toml", Environment(self.tree).key())

    def is_done(self) -> bool:
        """Whether the project is installed with this metadata."""
        return self.stamp.matches(self.key())

    def run(self) -> None:
        """Install the project in place. Raises SetupError."""
        _pip(self.tree).install("--no-deps", "--no-build-isolation", "--editable", str(self.tree.root))
        self.stamp.write(self.key())


def _require_room(download: int, place: Path) -> None:
    """PyTorch unpacks to up to three times its download, which stays in pip's cache beside it."""
    needed = 4 * download
    free = shutil.disk_usage(place).free
    if free < needed:
        raise SetupError(
            f"The disk that holds {place} has {human_bytes(free)} free; PyTorch needs about {human_bytes(needed)}.",
            "Free some space and run the same command again; it goes on where it stopped.",
        )


def locked_lines(lock: Path, names: tuple[str, ...]) -> str:
    """The entries of a lock for the named packages, with their hashes."""
    kept: list[str] = []
    keeping = False
    for line in lock.read_text(encoding="utf-8").splitlines():
        if line and not line[0].isspace() and not line.startswith("#"):
            keeping = line.split("==", 1)[0] in names
        if keeping and not line.lstrip().startswith("#"):
            kept.append(line)
    return "\n".join(kept) + "\n"


def locked_names(lock: Path) -> frozenset[str]:
    """Names of all packages in a lock, normalised as the lock's maker writes them."""
    lines = lock.read_text(encoding="utf-8").splitlines()
    return frozenset(line.split("==", 1)[0] for line in lines if line and line[0].isalnum())
