"""How many pages the pool gets, from the settings or from the memory that is free. Plain arithmetic."""

from __future__ import annotations

import psutil

from octavo_engine.config import EngineConfig
from octavo_engine.errors import OutOfMemory

_MEBIBYTE = 1 << 20
# What is left to other programs where nothing is configured: half of the free memory, and this at least.
_LEAST_MARGIN = 1 << 30


def pool_size(config: EngineConfig, *, page_bytes: int, context: int, free: int) -> int:
    """Pages of the pool.

    Without `kv_pages` and `kv_memory`: the free memory less a margin for other programs, its half and at least 1 GiB;
    and no more than `max_running` sequences of full context need. The memory of a page is taken when the page is first
    written to.

    Args:
        config: the engine's settings.
        page_bytes: bytes of one page.
        context: positions that one sequence may have.
        free: bytes of memory that are free.

    Raises:
        OutOfMemory: the configured pool, or a single page, does not fit the free memory (bytes).
    """
    pages = config.kv_pages
    if pages is None and config.kv_memory is not None:
        pages = config.kv_memory // page_bytes
    if pages is None:
        everybody = config.max_running * -(-context // config.page_size)
        margin = max(_LEAST_MARGIN, free // 2)
        pages = min(everybody, max(0, free - margin) // page_bytes)
    check_fits(pages, page_bytes=page_bytes, free=free)
    return pages


def free_memory() -> int:
    """Bytes of main memory that are free or can be freed at once."""
    return psutil.virtual_memory().available


def check_fits(pages: int, *, page_bytes: int, free: int) -> None:
    """Check that `pages` pages of `page_bytes` bytes fit into `free` bytes.

    Raises:
        OutOfMemory: they do not, or there is not a single one.
    """
    needed = max(1, pages) * page_bytes
    if pages < 1 or needed > free:
        raise OutOfMemory(
            f"The page pool needs {needed // _MEBIBYTE:,} MiB and {free // _MEBIBYTE:,} MiB are free; "
            "close other programs, give it fewer pages, or choose a smaller model.",
            needed=needed,
            available=free,
        )
