"""Both commands of README.md work on a Debian 12 that has `python3` and nothing else."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

pytestmark = [pytest.mark.long, pytest.mark.timeout(3000)]

# Where pip keeps what a machine was told about its index; read through pip itself.
_PIP_SETTINGS = (
    "cert",
    "constraint",
    "default-timeout",
    "extra-index-url",
    "find-links",
    "index-url",
    "proxy",
    "trusted-host",
)


@dataclass(frozen=True, slots=True)
class BareDebian:
    """A root file system at `root`. Mounts live in a namespace of each command, so they end with it."""

    root: Path

    @classmethod
    def make(cls, root: Path) -> BareDebian:
        """Build the file system. Takes about 20 seconds and 250 MB."""
        command = ["mmdebstrap", "--quiet", "--variant=minbase", "--include=python3", "bookworm", str(root)]
        subprocess.run(command, check=True)
        shutil.copyfile("/etc/resolv.conf", root / "etc" / "resolv.conf")
        return cls(root)

    def add_project(self, source: Path, files: tuple[Path, ...]) -> None:
        """Copy the project's files to /octavo."""
        for file in files:
            target = self.root / "octavo" / file.relative_to(source)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, target)

    def run(self, command: str, *, typed: str = "") -> subprocess.CompletedProcess[str]:
        """Run a shell command in /octavo as root of the bare machine, with `typed` on its standard input."""
        settings = pip_settings()
        script = ["set -eu", f"root={shlex.quote(str(self.root))}"]
        script += ["mount -t proc proc $root/proc", "mount --rbind /dev $root/dev", "mount -t tmpfs tmpfs $root/tmp"]
        variables = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8", **settings}
        for place in named_places(settings):
            if place.is_dir():
                inside = f"$root{shlex.quote(str(place))}"
                script += [f"mkdir -p {inside}", f"mount --bind {shlex.quote(str(place))} {inside}"]
            else:
                # A copy under another name: packages that are installed there may own this one.
                copy = f"/settings{place}"
                (self.root / copy[1:]).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(place, self.root / copy[1:])
                variables = {name: value.replace(str(place), copy) for name, value in variables.items()}
        assignments = " ".join(f"{name}={shlex.quote(value)}" for name, value in variables.items())
        script.append(f"exec chroot $root /usr/bin/env -i {assignments} sh -c {shlex.quote('cd /octavo; ' + command)}")
        return subprocess.run(
            ["unshare", "--mount", "--propagation", "private", "sh", "-c", "\n".join(script)],
            input=typed, capture_output=True, text=True, check=False,
        )  # fmt: skip


def pip_settings() -> dict[str, str]:
    """The machine's own pip settings and proxies, as environment variables: the bare one fetches from there too."""
    listed = subprocess.run(["pip", "config", "list"], capture_output=True, text=True, check=False).stdout
    settings: dict[str, str] = {}
    # Variables of the environment come last in the list, and win.
    for line in sorted(listed.splitlines(), key=lambda text: text.startswith(":env:")):
        name, _, value = line.partition("=")
        option = name.rsplit(".", 1)[-1]
        if option in _PIP_SETTINGS:
            settings[f"PIP_{option.upper().replace('-', '_')}"] = value.strip("'").replace("\\n", " ")
    return settings | {name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")}


def named_places(settings: dict[str, str]) -> tuple[Path, ...]:
    """Files and folders that the settings name; around a local index its parent, where its files lie."""
    places: set[Path] = set()
    for word in " ".join(settings.values()).split():
        path = Path(word.removeprefix("file://"))
        if path.is_absolute() and path.exists():
            places.add(path.parent if word.startswith("file://") else path)
    return tuple(sorted(places))


@pytest.fixture(scope="module")
def bare(root: Path, tracked_files: tuple[Path, ...], tmp_path_factory: pytest.TempPathFactory) -> Iterator[BareDebian]:
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("a root file system can only be made and entered by root on Linux")
    if shutil.which("mmdebstrap") is None:
        pytest.skip("mmdebstrap is not installed (apt-get install mmdebstrap)")
    machine = BareDebian.make(tmp_path_factory.mktemp("debian") / "root")
    machine.add_project(root, tracked_files)
    yield machine
    shutil.rmtree(machine.root)


def test_first_command_talks_to_a_model(bare: BareDebian) -> None:
    done = bare.run(
        "python3 packaging/dev.py run --temperature 0 --max-tokens 32", typed="What is the capital of France?\n"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "No display here" in done.stdout
    assert "PyTorch 2.13.0" in done.stdout
    assert "Paris" in done.stdout
    assert "Traceback" not in done.stderr


def test_second_command_passes_all_tests(bare: BareDebian) -> None:
    done = bare.run("python3 packaging/dev.py test")
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr
    assert " passed" in done.stdout.splitlines()[-1]
