"""PyTorch: exact version, no hash, since which build it is (CPU or CUDA) is decided by the index of the machine."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from octavo_dev.environment import environment_key
from octavo_dev.lock import Lock, normalised
from octavo_dev.pip import Pip, WheelFile
from octavo_dev.progress import human_bytes
from octavo_dev.setup_error import SetupError
from octavo_dev.stamp import fingerprint
from octavo_dev.step import StampedStep
from octavo_dev.wheel_size import total_bytes


class TorchBuild(StampedStep):
    """PyTorch, with the libraries that only it brings."""

    name: ClassVar[str] = "torch"
    heading: ClassVar[str] = "PyTorch"

    def key(self) -> str:
        """The locked release and the environment."""
        return fingerprint(self.tree.torch_lock, environment_key(self.tree))

    def work(self) -> None:
        """Say which build it will be and how large, then install it. Raises SetupError."""
        pip = Pip(self.tree.python, self.tree.pip_log)
        with tempfile.TemporaryDirectory(prefix="octavo-") as folder:
            chosen = pip.resolve("--requirement", str(self.tree.torch_lock), report=Path(folder, "report.json"))
        locked = Lock(self.tree.requirements_lock).names()
        own = [wheel for wheel in chosen if normalised(wheel.name) not in locked]
        # Nothing of its own is missing where this very release is installed already.
        if own:
            size = total_bytes(own, self.tree.environment)
            print(f"      {_announcement(own, size)}", flush=True)
            _require_room(size or 0, self.tree.environment)
            pip.install("--no-deps", *(f"{wheel.name}=={wheel.version}" for wheel in own))


def _announcement(wheels: Sequence[WheelFile], size: int | None) -> str:
    torch = next((wheel for wheel in wheels if wheel.name == "torch"), wheels[0])
    build = "CUDA" if any(wheel.name.startswith("nvidia") for wheel in wheels) else "CPU"
    amount = "an unknown number of bytes" if size is None else f"{human_bytes(size)} ({size:,} bytes)"
    files = "1 file" if len(wheels) == 1 else f"{len(wheels)} files"
    return f"PyTorch {torch.version}, the {build} build: {amount} in {files}"


def _require_room(download: int, place: Path) -> None:
    """PyTorch unpacks to up to three times its download, which stays in pip's cache beside it."""
    needed = 4 * download
    free = shutil.disk_usage(place).free
    if free < needed:
        raise SetupError(
            f"The disk that holds {place} has {human_bytes(free)} free; PyTorch needs about {human_bytes(needed)}.",
            "Free some space and run the same command again; it goes on where it stopped.",
        )
