"""A sequence's page table: which page holds which of its positions. Plain integers; knows no tensor."""

from __future__ import annotations

from octavo_engine.page_pool import PagePool


class PageTable:
    """The pages of one sequence in order of position, taken from a pool when tokens arrive."""

    def __init__(self, pool: PagePool) -> None:
        """Make an empty table over `pool`."""
        self._pool = pool
        self.pages: list[int] = []

    def missing(self, tokens: int) -> int:
        """Number of pages to take before the table covers `tokens` positions."""
        return max(0, self._pool.pages_for(tokens) - len(self.pages))

    def cover(self, tokens: int) -> None:
        """Take pages until `tokens` positions have one; the caller has checked that they are free."""
        for _ in range(self.missing(tokens)):
            self.pages.append(self._pool.take())

    def slots(self, start: int, stop: int) -> list[int]:
        """Where the positions `start` to `stop` lie: page * page_size + offset, for each."""
        size = self._pool.page_size
        return [self.pages[position // size] * size + position % size for position in range(start, stop)]

    def release(self) -> None:
        """Give all pages back."""
        self._pool.release(reversed(self.pages))
        self.pages.clear()
