"""The empty virtual environment. What is in it is the business of the steps that follow."""

from __future__ import annotations

import errno
import os
import platform
import shutil
import subprocess
import sys
from typing import ClassVar

from octavo_dev.project_tree import ProjectTree
from octavo_dev.setup_error import SetupError, disk_error
from octavo_dev.stamp import fingerprint
from octavo_dev.step import StampedStep

# Bytes that an environment with nothing but pip takes.
_SMALLEST_ENVIRONMENT = 30_000_000


def environment_key(tree: ProjectTree) -> str:
    """What an environment stands for: it cannot be moved, and serves one minor version of Python."""
    return fingerprint(str(tree.root), f"{sys.version_info.major}.{sys.version_info.minor}")


class Environment(StampedStep):
    """Makes the environment, or adopts one that works."""

    name: ClassVar[str] = "environment"
    heading: ClassVar[str] = "Python environment"

    def key(self) -> str:
        """The checkout's place and Python's version."""
        return environment_key(self.tree)

    def is_done(self) -> bool:
        """Whether the environment is there and whole."""
        return super().is_done() and self.tree.python.exists()

    def work(self) -> None:
        """Make it unless one is there that works. Raises SetupError."""
        if self._works():
            return
        print(f"      Python {platform.python_version()} in {self.tree.environment}", flush=True)
        command = [sys.executable, "-m", "venv", "--clear", str(self.tree.environment)]
        made = subprocess.run(command, capture_output=True, text=True, check=False)
        if made.returncode == 0:
            return
        # venv hides what its inner pip said, so the disk itself is asked.
        if shutil.disk_usage(self.tree.root).free < _SMALLEST_ENVIRONMENT:
            raise disk_error(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), self.tree.environment)
        words = (made.stdout + made.stderr).strip().splitlines() or ["no message"]
        raise SetupError(
            f"A virtual environment could not be made: {words[-1]}",
            "Look at that, delete the folder .venv, and run the same command again.",
        )

    def _works(self) -> bool:
        if not self.tree.python.exists():
            return False
        question = "import pip, sys; print(*sys.version_info[:2], sys.prefix)"
        answer = subprocess.run([self.tree.python, "-c", question], capture_output=True, text=True, check=False)
        expected = f"{sys.version_info.major} {sys.version_info.minor} {self.tree.environment}"
        return answer.returncode == 0 and answer.stdout.strip() == expected
