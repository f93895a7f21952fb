"""What the arithmetic depends on, as one digest: results of an earlier run may be used only where it is equal."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.metadata import version
from pathlib import Path


@cache
def identity() -> str:
    """Digest of the sources of this package, of the libraries that compute and of the processor. Loads numba."""
    from octavo_kernels.cpu.cache import stamp

    digest = hashlib.sha256(f"{stamp()} {version('torch')}".encode())
    package = Path(__file__).parent
    for source in sorted(package.rglob("*.py")):
        digest.update(source.relative_to(package).as_posix().encode())
        digest.update(source.read_bytes())
    return digest.hexdigest()
