"""What the hashed lock holds: the tools that install and build, then everything; and the project itself, in place."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import ClassVar

from octavo_dev.environment import environment_key
from octavo_dev.lock import Lock
from octavo_dev.pip import Pip
from octavo_dev.stamp import fingerprint
from octavo_dev.step import StampedStep

_TOOLS = ("pip", "setuptools", "wheel")


class Tools(StampedStep):
    """pip, setuptools and wheel in their locked versions: the machine's own pip may be years old."""

    name: ClassVar[str] = "tools"
    heading: ClassVar[str] = "pip"

    def key(self) -> str:
        """Their locked entries and the environment."""
        return fingerprint(Lock(self.tree.requirements_lock).entries(_TOOLS), environment_key(self.tree))

    def work(self) -> None:
        """Install them. Raises SetupError."""
        with tempfile.TemporaryDirectory(prefix="octavo-") as folder:
            entries = Path(folder, "tools.lock")
            entries.write_text(Lock(self.tree.requirements_lock).entries(_TOOLS), encoding="utf-8")
            pip = Pip(self.tree.python, self.tree.pip_log)
            pip.install("--require-hashes", "--no-deps", "--requirement", str(entries), raw_progress=False)


class Libraries(StampedStep):
    """Every package of the hashed lock."""

    name: ClassVar[str] = "libraries"
    heading: ClassVar[str] = "Libraries"

    def key(self) -> str:
        """The lock and the environment."""
        return fingerprint(self.tree.requirements_lock, environment_key(self.tree))

    def work(self) -> None:
        """Install the lock. Raises SetupError."""
        pip = Pip(self.tree.python, self.tree.pip_log)
        pip.install("--require-hashes", "--no-deps", "--requirement", str(self.tree.requirements_lock))


class Project(StampedStep):
    """Octavo itself, in place: a changed source file needs no new set-up."""

    name: ClassVar[str] = "project"
    heading: ClassVar[str] = "Octavo"

    def key(self) -> str:
        """The metadata and the environment."""
        return fingerprint(self.tree.root / "pyproject.toml", environment_key(self.tree))

    def work(self) -> None:
        """Install the project in place. Raises SetupError."""
        pip = Pip(self.tree.python, self.tree.pip_log)
        pip.install("--no-deps", "--no-build-isolation", "--editable", str(self.tree.root))
