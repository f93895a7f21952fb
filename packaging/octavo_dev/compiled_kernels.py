"""The step that compiles the CPU kernels once, so that no first answer waits for a compiler."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass

from octavo_dev.project_tree import ProjectTree
from octavo_dev.setup_error import SetupError
from octavo_dev.stamp import Stamp, fingerprint, folder_fingerprint


@dataclass(frozen=True, slots=True)
class CompiledKernels:
    """Compiled forms of octavo_kernels for this processor, in the environment's share folder."""

    tree: ProjectTree
    title: str = "Kernels for this processor"

    @property
    def stamp(self) -> Stamp:
        """Mark of this step."""
        return Stamp(self.tree.stamps / "kernels")

    def key(self) -> str:
        """The kernels' sources and the lock that names their compiler."""
        sources = folder_fingerprint(self.tree.root / "kernels" / "octavo_kernels", "*.py")
        return fingerprint(sources, self.tree.requirements_lock, str(self.tree.root))

    def is_done(self) -> bool:
        """Whether these sources were compiled."""
        return self.stamp.matches(self.key())

    def run(self) -> None:
        """Compile. Raises SetupError."""
        key = self.key()
        command = [str(self.tree.python), "-m", "octavo_kernels.compile"]
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or [f"code {done.returncode}"])[-1]
            raise SetupError(
                f"The kernels could not be compiled: {last.rstrip('.')}.",
                "Free some disk space and memory if they ran out, and run the same command again.",
            )
        self.stamp.write(key)
