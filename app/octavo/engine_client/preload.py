"""Maps torch's shared libraries into the process before torch is imported.

`dlopen` through ctypes gives the interpreter's lock away for as long as it lasts, an import does not: loaded like this
first, the import stalls the window's thread about 50 ms instead of 235.
"""

from __future__ import annotations

import ctypes
import importlib.util
import logging
import sys
from pathlib import Path

_log = logging.getLogger(__name__)
# In the order in which they need each other; each platform has some of them.
_STEMS = ("gomp", "c10", "torch_cpu", "torch", "shm")


def preload_torch() -> None:
    """Load what there is of torch's libraries. Call it on the thread that imports torch next."""
    if "torch" in sys.modules:
        return
    specification = importlib.util.find_spec("torch")
    if specification is None or not specification.submodule_search_locations:
        return
    folder = Path(specification.submodule_search_locations[0]) / "lib"
    for stem in _STEMS:
        for library in sorted(folder.glob(f"lib{stem}[.-]*so*")):
            try:
                ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
            except OSError as fault:
                # The import itself will say what is missing; here it only costs time.
                _log.info("%s was not loaded ahead: %s", library.name, fault)
