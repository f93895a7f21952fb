"""Where compiled kernels are kept, and whether what lies there may be used.

Set-up fills a folder beside the program, which is only read afterwards. When that is missing or does not fit, kernels
are compiled into a writable folder. A folder is trusted when its seal names this source, these compilers and this
processor, and the digests of its files: neither absolute paths nor times count, so the program may be moved.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite.binding
import numba
import platformdirs
from numba.core.caching import _CacheLocator

_SEAL = "seal.json"
_LOCATOR = f"{__name__}.KernelLocator"


@dataclass(frozen=True, slots=True)
class CacheFolder:
    """Where compiled kernels are kept now, and why there; `folder` is None when nothing can be written."""

    folder: Path | None
    sealed: bool
    reason: str


_chosen: CacheFolder | None = None
_writable: Path | None = None


def installed_folder() -> Path:
    """The folder that set-up fills."""
    return Path(sys.prefix) / "share" / "octavo" / "kernels"


def use(folder: Path) -> None:
    """Compile into `folder` from now on, if the installed kernels do not fit; it is made when needed."""
    global _chosen, _writable
    _writable, _chosen = folder, None


def chosen() -> CacheFolder:
    """The folder in use."""
    global _chosen  # noqa: PLW0603
    if _chosen is None:
        _chosen = _choose()
    return _chosen


def obstacle(folder: Path) -> str | None:
    """Why the kernels in `folder` cannot be used, or None."""
    try:
        seal = json.loads((folder / _SEAL).read_bytes())
        if seal["stamp"] != stamp():
            return "made from another source, by another compiler or for another processor"
        if any(_digest(folder / name) != digest for name, digest in seal["files"].items()):
            return "damaged"
    except FileNotFoundError:
        return "not compiled"
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return f"unreadable ({error})"
    return None


def fill_installed() -> None:
    """Compile into the folder beside the program from now on, from the beginning. Raises OSError."""
    global _chosen  # noqa: PLW0603
    folder = installed_folder()
    clear(folder)
    _chosen = CacheFolder(folder, sealed=False, reason="set-up compiles into it")


def keep() -> None:
    """Vouch for the folder in use, now that every kernel is in it; nothing where that has been done or cannot be."""
    global _chosen  # noqa: PLW0603
    now = chosen()
    if now.folder is not None and not now.sealed:
        try:
            seal(now.folder)
        except OSError as error:
            _give_up(error)
        else:
            _chosen = CacheFolder(now.folder, sealed=True, reason=now.reason)


def seal(folder: Path) -> None:
    """Vouch for everything in `folder`."""
    files = {path.name: _digest(path) for path in sorted(folder.glob("*.nb[ic]"))}
    unfinished = folder / f"{_SEAL}.{os.getpid()}"
    unfinished.write_text(json.dumps({"stamp": stamp(), "files": files}, indent=1))
    unfinished.replace(folder / _SEAL)


def clear(folder: Path) -> None:
    """Remove compiled kernels from `folder` and make it writable."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in (folder / _SEAL, *folder.glob("*.nb[ic]*")):
        path.unlink(missing_ok=True)


@cache
def stamp() -> str:
    """Digest of all that compiled kernels depend on."""
    digest = hashlib.sha256()
    for part in (numba.__version__, llvmlite.__version__, platform.python_version(), platform.machine()):
        digest.update(f"{part}\n".encode())
    digest.update(llvmlite.binding.get_host_cpu_name().encode())
    digest.update(llvmlite.binding.get_host_cpu_features().flatten().encode())
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.name.encode())
        digest.update(source.read_bytes())
    return digest.hexdigest()


def compiled(function: Callable[..., Any], signature: Any, **options: Any) -> Any:
    """Compile `function` to a C function of `signature`, or read it from the folder in use.

    Returns:
        numba's CFunc, with `address` and `cache_hits`.
    """
    if chosen().folder is None:
        return numba.cfunc(signature, **options)(function)
    # The setting is documented, but for the whole process: it holds for this kernel only.
    before = numba.config.CACHE_LOCATOR_CLASSES
    numba.config.CACHE_LOCATOR_CLASSES = _LOCATOR
    try:
        return numba.cfunc(signature, cache=True, **options)(function)
    except OSError as error:
        # No space left, or the folder was taken away: compile for this process alone.
        _give_up(error)
        return numba.cfunc(signature, **options)(function)
    finally:
        numba.config.CACHE_LOCATOR_CLASSES = before


class KernelLocator(_CacheLocator):  # type: ignore[misc]
    """Tells numba where to keep a kernel; asked by name through numba's cache locator setting."""

    def get_cache_path(self) -> str:
        """The folder in use."""
        folder = chosen().folder
        assert folder is not None, "kernels are not cached without a folder"
        return str(folder)

    def get_source_stamp(self) -> str:
        """What a kernel depends on besides its own text."""
        return stamp()

    def get_disambiguator(self) -> str:
        """Kernels have unique names."""
        return "octavo"

    @classmethod
    def from_function(cls, _function: Callable[..., Any], _file: str) -> KernelLocator:
        """One locator serves every kernel."""
        return cls()


def _choose() -> CacheFolder:
    installed = installed_folder()
    reason = obstacle(installed)
    if reason is None:
        return CacheFolder(installed, sealed=True, reason="compiled by set-up")
    folder = _writable or _default_folder()
    here = obstacle(folder)
    if here is None:
        return CacheFolder(folder, sealed=True, reason=f"the kernels in {installed} are {reason}")
    try:
        clear(folder)
    except OSError as error:
        return CacheFolder(None, sealed=False, reason=f"{folder} cannot be written: {error.strerror}")
    return CacheFolder(folder, sealed=False, reason=f"the kernels in {installed} are {reason}, in {folder}: {here}")


def _default_folder() -> Path:
    named = os.environ.get("NUMBA_CACHE_DIR")
    return Path(named) / "octavo" if named else platformdirs.user_cache_path("octavo") / "kernels"


def _give_up(error: OSError) -> None:
    global _chosen  # noqa: PLW0603
    _chosen = CacheFolder(None, sealed=False, reason=f"compiled kernels cannot be kept: {error.strerror}")


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
