"""Assembly: builds the private tree beside its final name and renames it, so a tree that exists is whole."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib.metadata import Distribution
from pathlib import Path

from octavo_tree.closure import needed_distributions
from octavo_tree.interpreter import copy_interpreter
from octavo_tree.launcher import write_launcher

_SOURCES = ("app", "engine", "kernels", "pyproject.toml", "README.md", "LICENSE")


def assemble(root: Path, target: Path, tell: Callable[[str], None]) -> None:
    """Build the tree of the checkout at `root` as `target`, replacing what is there; `tell` hears each step.

    Raises OSError when the disk does not take it and CalledProcessError when a part cannot be built.
    """
    part = target.with_name(f"{target.name}.part")
    _remove(part)
    part.mkdir(parents=True)
    tell("[1/6] Interpreter")
    program = copy_interpreter(part)
    libraries = needed_distributions("octavo")
    tell(f"[2/6] {len(libraries)} libraries")
    packages = part / "packages"
    for library in libraries:
        _copy_distribution(library, packages)
    tell("[3/6] Octavo")
    _install_project(root, packages)
    tell("[4/6] Starter model and resources")
    shutil.copytree(Path(sys.prefix, "share", "octavo", "models"), part / "share" / "octavo" / "models")
    if (root / "resources").is_dir():
        shutil.copytree(root / "resources", part / "share" / "octavo" / "resources")
    launcher = write_launcher(part, program.name)
    tell("[5/6] Byte code")
    _compile_sources(part, program)
    tell("[6/6] Kernels for this processor")
    subprocess.run([launcher, "-m", "octavo_kernels.compile"], check=True)
    _remove(target)
    part.rename(target)


def _copy_distribution(library: Distribution, packages: Path) -> None:
    """Copy what lies below site-packages; programs outside it are for developers."""
    for file in library.files or ():
        if ".." in file.parts or "__pycache__" in file.parts:
            continue
        source = Path(str(library.locate_file(file)))
        destination = packages / str(file)
        destination.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, destination)


def _install_project(root: Path, packages: Path) -> None:
    """Install from a copy of the sources: a build leaves folders behind."""
    with tempfile.TemporaryDirectory(prefix="octavo-") as folder:
        copy = Path(folder, "sources")
        copy.mkdir()
        for name in _SOURCES:
            if (root / name).is_dir():
                shutil.copytree(root / name, copy / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
            else:
                shutil.copy2(root / name, copy / name)
        options = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--no-compile"]
        command = [sys.executable, "-m", "pip", "install", *options, "--target", str(packages), str(copy)]
        subprocess.run(command, check=True)
    # Start scripts that name the environment copied from; the launcher takes their place.
    _remove(packages / "bin")


def _compile_sources(tree: Path, program: Path) -> None:
    """Byte code that is never checked against its source, so a copy with other file times still uses it."""
    environment = {**os.environ, "LD_LIBRARY_PATH": str(tree / "lib")}
    for folder in (tree / "lib", tree / "packages"):
        options = ["-q", "-q", "-j", "0", "--invalidation-mode", "unchecked-hash"]
        command = [str(program), "-I", "-m", "compileall", *options, str(folder)]
        # Some libraries ship templates and tests in files that are no valid Python; those stay uncompiled.
        subprocess.run(command, env=environment, check=False)


def _remove(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)
