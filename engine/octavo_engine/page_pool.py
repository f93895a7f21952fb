"""The page pool: who holds which page. Plain integers; knows neither sequences nor tokens nor tensors.

A page is free, held by one or more page tables, or cached: kept by the prefix tree while no table holds it. A page
can be held and kept at once; it becomes free when the last holder and the tree have let go of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from octavo_engine.page_move import PageMove


class PagePool:
    """All pages of one device, numbered from 0. The page that became free last is taken first: its memory is warm."""

    def __init__(self, total: int, page_size: int) -> None:
        """Make a pool of `total` pages of `page_size` token positions each; all are free."""
        assert total > 0
        assert page_size > 0
        self.total = total
        self.page_size = page_size
        # Called when no page is free but some are cached: must drop one that no table holds.
        self.reclaim: Callable[[], None] | None = None
        # What has to be moved before the next step computes, in order.
        self.moves: list[PageMove] = []
        # Pages from this number on have never been taken, so that no memory stands behind them yet.
        self.touched = 0
        # Grows with everything that happens to a page.
        self.changes = 0
        self._free = list(range(total - 1, -1, -1))
        self._holders = [0] * total
        self._kept = bytearray(total)
        self._cached = 0

    @property
    def free(self) -> int:
        """Number of pages that nobody needs."""
        return len(self._free)

    @property
    def cached(self) -> int:
        """Number of pages that only the prefix tree keeps."""
        return self._cached

    @property
    def used(self) -> int:
        """Number of pages that page tables hold."""
        return self.total - len(self._free) - self._cached

    @property
    def available(self) -> int:
        """Number of pages that can be taken: free ones and cached ones."""
        return len(self._free) + self._cached

    def pages_for(self, tokens: int) -> int:
        """Number of pages that `tokens` positions need."""
        return -(-tokens // self.page_size)

    def holders(self, page: int) -> int:
        """Number of page tables that hold a page."""
        return self._holders[page]

    def is_kept(self, page: int) -> bool:
        """Whether the prefix tree keeps a page."""
        return bool(self._kept[page])

    def take(self) -> int:
        """A page for one page table; the caller has checked that one is available."""
        if not self._free:
            assert self.reclaim is not None
            assert self._cached, "no page is available"
            self.reclaim()
        page = self._free.pop()
        self._holders[page] = 1
        self.changes += 1
        self.touched = max(self.touched, page + 1)
        return page

    def share(self, page: int) -> None:
        """Add a holder to a page that is held or kept."""
        assert self._holders[page] or self._kept[page], f"page {page} is free"
        if not self._holders[page]:
            self._cached -= 1
        self._holders[page] += 1
        self.changes += 1

    def release(self, page: int) -> None:
        """Take one holder away."""
        assert self._holders[page], f"page {page} has no holder"
        self._holders[page] -= 1
        self.changes += 1
        if not self._holders[page]:
            if self._kept[page]:
                self._cached += 1
            else:
                self._free.append(page)

    def keep(self, page: int) -> None:
        """Let the prefix tree keep a page that is held."""
        assert self._holders[page], f"page {page} has no holder"
        assert not self._kept[page], f"page {page} is kept already"
        self._kept[page] = 1
        self.changes += 1

    def drop(self, page: int) -> None:
        """The prefix tree gives a page up; it becomes free unless a table holds it."""
        assert self._kept[page], f"page {page} is not kept"
        self._kept[page] = 0
        self.changes += 1
        if not self._holders[page]:
            self._cached -= 1
            self._free.append(page)

    def take_moves(self) -> tuple[PageMove, ...]:
        """The moves noted since the last call."""
        moves, self.moves = tuple(self.moves), []
        return moves

    def resize(self, total: int, places: Mapping[int, int]) -> None:
        """Make a pool of `total` pages in which each page in use has the number that `places` gives; the rest is free.

        The caller has seen to it that no move is outstanding, and tells page tables and tree.
        """
        holders, kept, free = self._holders, self._kept, set(self._free)
        self._holders, self._kept = [0] * total, bytearray(total)
        taken = set()
        for old, new in places.items():
            if old not in free:
                self._holders[new], self._kept[new] = holders[old], kept[old]
                taken.add(new)
        self._free = [page for page in range(total - 1, -1, -1) if page not in taken]
        self.total = total
        self.touched = max(taken, default=-1) + 1
        self.changes += 1

    def places(self) -> dict[int, int]:
        """The numbers that the pages in use get when they move together: old to new."""
        free = set(self._free)
        used = [page for page in range(self.total) if page not in free]
        return {old: new for new, old in enumerate(used)}

    def problems(self, held: Iterable[int], kept: Iterable[int]) -> list[str]:
        """What is wrong when the page tables hold exactly `held`, with repeats, and the tree keeps exactly `kept`."""
        holders, tree = Counter(held), Counter(kept)
        found = [f"page {page} stands {count} times in the prefix tree" for page, count in tree.items() if count > 1]
        for page in range(self.total):
            if self._holders[page] != holders[page]:
                found.append(f"page {page} counts {self._holders[page]} holders and has {holders[page]}")
            if bool(self._kept[page]) != (page in tree):
                found.append(f"page {page} is {'not ' if page in tree else ''}marked as kept")
        unused = {page for page in range(self.total) if not holders[page] and page not in tree}
        if len(self._free) != len(unused) or set(self._free) != unused:
            found.append(f"{len(self._free)} pages are listed as free and {len(unused)} are")
        cached = sum(1 for page in tree if not holders[page])
        if self._cached != cached:
            found.append(f"{self._cached} pages count as cached and {cached} are")
        return found

    def heal(self, held: Iterable[int], kept: Iterable[int]) -> None:
        """Rebuild the books from what page tables hold and the tree keeps."""
        holders, tree = Counter(held), set(kept)
        self._holders = [holders[page] for page in range(self.total)]
        self._kept = bytearray(page in tree for page in range(self.total))
        self._cached = sum(1 for page in tree if not holders[page])
        self._free = [page for page in range(self.total - 1, -1, -1) if not holders[page] and page not in tree]
