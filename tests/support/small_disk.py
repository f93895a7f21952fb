"""Small and read-only disks for tests: a file system in memory, mounted for as long as the test needs it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

needs_mount = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="mounting a small or a read-only disk needs root on Linux"
)


@contextmanager
def mounted(folder: Path, options: str) -> Iterator[Path]:
    """A disk at `folder`, which is made, with mount options such as "size=2m" or "size=8m,ro"."""
    folder.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)
