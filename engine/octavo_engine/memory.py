"""Gives memory that has been freed back to the system."""

from __future__ import annotations

import ctypes
import gc
import sys


def trim_memory() -> None:
    """Collect garbage and have the C library return what it keeps of freed memory; a few milliseconds."""
    gc.collect()
    return_freed_memory()


def return_freed_memory() -> None:
    """Have the C library return what it keeps of freed memory; a millisecond."""
    if sys.platform != "linux":
        return
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (OSError, AttributeError):
        # Another C library than glibc; it has its own ways.
        return
