"""A sequence's page table: which page holds which of its positions. Plain integers; knows no tensor."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from octavo_engine.page_move import MoveKind, PageMove
from octavo_engine.page_pool import PagePool


class PageTable:
    """The pages of one sequence in order of position, shared with others until they are written to."""

    def __init__(self, pool: PagePool, shared: Iterable[int] = ()) -> None:
        """Make a table over `pool` that begins with the pages `shared`, held with their other holders."""
        self._pool = pool
        self.pages: list[int] = []
        for page in shared:
            pool.share(page)
            self.pages.append(page)

    def fork(self, tokens: int) -> PageTable:
        """A table that shares the pages of the first `tokens` positions, the partly filled last one included."""
        return PageTable(self._pool, self.pages[: self._pool.pages_for(tokens)])

    def needed(self, start: int, stop: int) -> int:
        """Number of pages to take before the positions `start` to `stop` can be written."""
        return max(0, self._pool.pages_for(stop) - len(self.pages)) + self._is_shared_at(start)

    def prepare(self, start: int, stop: int) -> None:
        """Make the positions `start` to `stop` writable; the caller has checked that the pages are available.

        Only the page of `start` can be a shared one that is written to: positions are written in order, so that
        everything behind it is new.
        """
        if self._is_shared_at(start):
            index = start // self._pool.page_size
            source = self.pages[index]
            self.pages[index] = self._pool.take()
            self._pool.moves.append(PageMove(MoveKind.COPY, source, self.pages[index]))
            self._pool.release(source)
        while len(self.pages) < self._pool.pages_for(stop):
            self.pages.append(self._pool.take())

    def truncate(self, pages: int) -> None:
        """Let go of all pages but the first `pages`."""
        while len(self.pages) > pages:
            self._pool.release(self.pages.pop())

    def renumber(self, places: Mapping[int, int]) -> None:
        """Follow the pages to their new numbers."""
        self.pages = [places[page] for page in self.pages]

    def append(self, page: int) -> None:
        """Go on with a page that has just been taken for this table."""
        self.pages.append(page)

    def adopt(self, pages: Iterable[int]) -> None:
        """Hold `pages` in place of this table's first ones, which have the same contents."""
        for index, page in enumerate(pages):
            if page != self.pages[index]:
                self._pool.share(page)
                self._pool.release(self.pages[index])
                self.pages[index] = page

    def _is_shared_at(self, position: int) -> bool:
        """Whether the page of `position` must be copied before it is written to."""
        index = position // self._pool.page_size
        if index >= len(self.pages):
            return False
        page = self.pages[index]
        return self._pool.holders(page) > 1 or self._pool.is_kept(page)

    def slots(self, start: int, stop: int) -> list[int]:
        """Where the positions `start` to `stop` lie: page * page_size + offset, for each."""
        size = self._pool.page_size
        return [self.pages[position // size] * size + position % size for position in range(start, stop)]

    @property
    def shared(self) -> int:
        """Number of pages that other tables hold too."""
        return sum(1 for page in self.pages if self._pool.holders(page) > 1)

    def release(self) -> None:
        """Let go of all pages, the last first."""
        for page in reversed(self.pages):
            self._pool.release(page)
        self.pages.clear()
