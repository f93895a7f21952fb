"""Makes every kernel of the processor ready before it is needed: read from the cache, or compiled and kept there."""

from __future__ import annotations

from collections.abc import Callable

from octavo_kernels.dispatch import backends


def warm(progress: Callable[[int, int], object] | None = None) -> None:
    """Load all kernels of the processor.

    Args:
        progress: called with the kernels that are ready and their number, before the first and after each; what it
            raises ends the warming.
    """
    # Choosing the implementations imports them, which registers their kernels.
    backends("cpu")
    from octavo_kernels.cpu import cache
    from octavo_kernels.cpu.native_kernel import KERNELS

    if progress is not None:
        progress(0, len(KERNELS))
    for ready, kernel in enumerate(KERNELS, 1):
        kernel.load()
        if progress is not None:
            progress(ready, len(KERNELS))
    cache.keep()
