"""How many pages the pool gets, from the settings or from the memory that is free. Plain arithmetic."""

from __future__ import annotations

from octavo_engine.config import EngineConfig
from octavo_engine.errors import OutOfMemory

# The share of the free memory that the pool may grow to where nothing is configured.
_SHARE = 4
_MEBIBYTE = 1 << 20


def pool_size(config: EngineConfig, *, page_bytes: int, context: int, free: int) -> int:
    """Pages of the pool.

    Without `kv_pages` and `kv_memory`: a quarter of the free memory, and no more than `max_running` sequences of full
    context need.

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
        pages = min(everybody, free // _SHARE // page_bytes)
    needed = max(1, pages) * page_bytes
    if pages < 1 or needed > free:
        raise OutOfMemory(
            f"The page pool needs {needed // _MEBIBYTE:,} MiB and {free // _MEBIBYTE:,} MiB are free; "
            "close other programs, give it fewer pages, or choose a smaller model.",
            needed=needed,
            available=free,
        )
    return pages
