"""The interpreter's part of the private tree: its program, its shared library and the standard library."""

from __future__ import annotations

import shutil
import sys
import sysconfig
from pathlib import Path

_VERSION = f"python{sys.version_info.major}.{sys.version_info.minor}"
# Parts of the standard library that no running Octavo uses, and what belongs to the machine that is copied from.
_LEFT_OUT = (
    "EXTERNALLY-MANAGED", "__pycache__", "config-*", "dist-packages", "ensurepip", "idlelib", "lib2to3", "pydoc_data",
    "site-packages", "sitecustomize.py", "test", "tkinter", "turtledemo",
)  # fmt: skip


def copy_interpreter(tree: Path) -> Path:
    """Copy the running environment's base interpreter into `tree`; the path of its program there.

    Laid out as `bin/` and `lib/pythonX.Y/`, an interpreter finds its own library by its place and needs no setting.
    """
    base = Path(sys._base_executable).resolve()  # type: ignore[attr-defined]  # noqa: SLF001 - the only name for it
    program = tree / "bin" / _VERSION
    program.parent.mkdir(parents=True)
    shutil.copy2(base, program)
    standard = Path(sysconfig.get_path("stdlib", vars={"installed_base": sys.base_prefix, "base": sys.base_prefix}))
    shutil.copytree(
        standard, tree / "lib" / _VERSION, ignore=shutil.ignore_patterns(*_LEFT_OUT), ignore_dangling_symlinks=True
    )
    _copy_shared_library(tree / "lib")
    return program


def _copy_shared_library(folder: Path) -> None:
    """A program that is linked against libpython gets it beside it; the launcher names the folder."""
    name, place = sysconfig.get_config_vars("INSTSONAME", "LIBDIR")
    library = Path(str(place), str(name))
    if str(name).startswith("libpython") and library.is_file():
        shutil.copy2(library, folder / library.name)
