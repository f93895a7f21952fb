"""Brings waiting sequences the pages of their beginnings that lie on disk: between the scheduler and the store."""

from __future__ import annotations

from collections.abc import Callable

from octavo_engine.page_store.page_file import PageName
from octavo_engine.page_store.page_key import page_keys
from octavo_engine.page_store.page_store import PageStore
from octavo_engine.sequence import FetchedPages, Sequence

# What has been read waits in memory until its sequence is admitted; what is longer is computed.
_MOST_BYTES = 1 << 30


class PageFetching:
    """Asks the store for pages; the scheduler keeps those who wait for them out of the batch."""

    def __init__(self, store: PageStore, *, page_size: int, page_bytes: int, wake: Callable[[], None]) -> None:
        """Fetch from `store`; `wake` is called on the store's thread when a sequence has got its pages."""
        self._store = store
        self._page_size = page_size
        self._wake = wake
        self._most_pages = max(1, _MOST_BYTES // max(1, page_bytes))

    def begin(self, sequence: Sequence, known: int) -> bool:
        """Start to read the pages behind its first `known` tokens; False when there are none."""
        root, size = self._store.root, self._page_size
        if root is None:
            return False
        # At least the last token is computed.
        tokens = sequence.tokens[:-1]
        keys = page_keys(root, tokens, size)
        first = known // size
        stop = min(self._store.known(keys), first + self._most_pages)
        if stop <= first:
            return False
        names = [PageName(keys[page], tuple(tokens[page * size : (page + 1) * size])) for page in range(first, stop)]

        def done(pages: list[bytearray]) -> None:
            sequence.fetched = FetchedPages(first, tuple(pages))
            sequence.fetching = False
            self._wake()

        sequence.fetching = True
        self._store.fetch(names, done)
        return True
