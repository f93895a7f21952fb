"""The libraries that a minimal Debian or Ubuntu lacks: found with dpkg-query, installed with apt when we are root."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from dataclasses import dataclass

from octavo_dev.setup_error import SetupError

# What Qt's wheels load from the system; Qt's own message blames libxcb-cursor0 for any of them.
_QT = (
    "libdbus-1-3", "libegl1", "libfontconfig1", "libgl1", "libglib2.0-0", "libgssapi-krb5-2", "libwayland-cursor0",
    "libxcb-cursor0", "libxcb-icccm4", "libxcb-image0", "libxcb-keysyms1", "libxcb-render-util0", "libxcb-shape0",
    "libxcb-xkb1", "libxkbcommon-x11-0", "libxkbcommon0",
)  # fmt: skip
# numba's OpenMP layer.
_KERNELS = ("libgomp1",)


def needed_packages() -> tuple[str, ...]:
    """Debian packages that Octavo needs, python3-venv among them where this Python cannot make an environment."""
    environment_maker = () if importlib.util.find_spec("ensurepip") else ("python3-venv",)
    return (*environment_maker, *_KERNELS, *_QT)


def missing_packages() -> tuple[str, ...]:
    """Those of `needed_packages` that dpkg does not list as installed; empty where there is no dpkg."""
    program = shutil.which("dpkg-query")
    if program is None:
        return ()
    needed = needed_packages()
    listed = subprocess.run(
        [program, "--show", "--showformat", "${db:Status-Status} ${Package} ${Provides}\n", *_with_renamed(needed)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    installed: set[str] = set()
    for line in listed.stdout.splitlines():
        status, *names = line.replace(",", " ").split()
        if status == "installed":
            installed.update(names)
    return tuple(name for name in needed if name not in installed)


def _with_renamed(names: tuple[str, ...]) -> tuple[str, ...]:
    """Newer releases renamed some libraries for 64-bit time; the new package provides the old name."""
    return (*names, "libglib2.0-0t64")


@dataclass(frozen=True, slots=True)
class SystemLibraries:
    """First step of the set-up. Asked anew each time, since it costs milliseconds and the system may change."""

    title: str = "System libraries"

    def is_done(self) -> bool:
        """Whether nothing is missing."""
        return not missing_packages()

    def run(self) -> None:
        """Install what is missing. Raises SetupError, with the command to type when we are not root."""
        missing = missing_packages()
        command = ["apt-get", "install", "--yes", "--no-install-recommends", *missing]
        if os.geteuid() != 0:
            raise SetupError(
                f"{len(missing)} system libraries are missing.",
                f"Install them with: sudo {' '.join(command)}  and run the same command again.",
            )
        print(f"      apt installs {', '.join(missing)}", flush=True)
        # An index that is an hour old may name files that are gone; fetching it takes seconds.
        _apt(["apt-get", "update"])
        _apt(command)


def _apt(command: list[str]) -> None:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = [line for line in (done.stdout + done.stderr).splitlines() if line.startswith(("E:", "Err"))]
        raise SetupError(
            f"`{' '.join(command[:2])}` failed: {lines[-1] if lines else f'code {done.returncode}'}.",
            f"Try `{' '.join(command)}` yourself and run the same command again.",
        )
