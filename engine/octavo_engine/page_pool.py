"""The page pool: which pages are free and which are taken. Plain integers; knows neither sequences nor tensors."""

from __future__ import annotations

from collections.abc import Iterable


class PagePool:
    """All pages of one device, numbered from 0, handed out one at a time.

    The page given back last is taken first, since its memory is the warmest.
    """

    def __init__(self, total: int, page_size: int) -> None:
        """Make a pool of `total` pages of `page_size` token positions each; all are free."""
        assert total > 0
        assert page_size > 0
        self.total = total
        self.page_size = page_size
        self._free = list(range(total - 1, -1, -1))
        self._taken = bytearray(total)
        # Pages from this number on have never been taken, so that no memory stands behind them yet.
        self.touched = 0

    @property
    def free(self) -> int:
        """Number of free pages."""
        return len(self._free)

    @property
    def used(self) -> int:
        """Number of pages that page tables hold."""
        return self.total - len(self._free)

    def pages_for(self, tokens: int) -> int:
        """Number of pages that `tokens` positions need."""
        return -(-tokens // self.page_size)

    def take(self) -> int:
        """A free page; the caller has checked that there is one."""
        assert self._free, "no free page"
        page = self._free.pop()
        self._taken[page] = 1
        self.touched = max(self.touched, page + 1)
        return page

    def release(self, pages: Iterable[int]) -> None:
        """Give pages back, the last first."""
        for page in pages:
            assert self._taken[page], f"page {page} was not taken"
            self._taken[page] = 0
            self._free.append(page)

    def problems(self, held: Iterable[int]) -> list[str]:
        """What is wrong when exactly the pages `held` should be taken: one sentence a fault."""
        found: list[str] = []
        seen: set[int] = set()
        for page in held:
            if page in seen:
                found.append(f"page {page} is in two page tables")
            seen.add(page)
            if not self._taken[page]:
                found.append(f"page {page} is held but free")
        leaked = sum(self._taken) - len(seen)
        if leaked:
            found.append(f"{leaked} pages are taken that nobody holds")
        if len(set(self._free)) != len(self._free) or any(self._taken[page] for page in self._free):
            found.append("the list of free pages holds a page twice or a taken one")
        if sum(self._taken) + len(self._free) != self.total:
            found.append(f"{sum(self._taken)} taken and {len(self._free)} free pages are not {self.total}")
        return found

    def heal(self, held: Iterable[int]) -> None:
        """Rebuild the books so that exactly the pages `held` are taken."""
        self._taken = bytearray(self.total)
        for page in held:
            self._taken[page] = 1
        self._free = [page for page in range(self.total - 1, -1, -1) if not self._taken[page]]
