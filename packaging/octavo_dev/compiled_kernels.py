"""The step that compiles the CPU kernels once, so that no first answer waits for a compiler."""

from __future__ import annotations

import subprocess
from typing import ClassVar

from octavo_dev.environment import environment_key
from octavo_dev.setup_error import SetupError
from octavo_dev.stamp import fingerprint, folder_fingerprint
from octavo_dev.step import StampedStep


class CompiledKernels(StampedStep):
    """Compiled forms of octavo_kernels for this processor, in the environment's share folder."""

    name: ClassVar[str] = "kernels"
    heading: ClassVar[str] = "Kernels for this processor"

    def key(self) -> str:
        """The kernels' sources and the lock that names their compiler."""
        sources = folder_fingerprint(self.tree.root / "kernels" / "octavo_kernels", "*.py")
        return fingerprint(sources, self.tree.requirements_lock, environment_key(self.tree))

    def work(self) -> None:
        """Compile. Raises SetupError."""
        command = [str(self.tree.python), "-m", "octavo_kernels.compile"]
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or [f"code {done.returncode}"])[-1]
            raise SetupError(
                f"The kernels could not be compiled: {last.rstrip('.')}.",
                "Free some disk space and memory if they ran out, and run the same command again.",
            )
