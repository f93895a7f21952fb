"""Copies the pages of ended sequences to the disk tier, a few at a time between steps. Engine thread only."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from octavo_engine.ownership import belongs_to
from octavo_engine.page_pool import PagePool
from octavo_engine.page_store.page_file import PageName
from octavo_engine.page_store.page_key import page_keys
from octavo_engine.page_store.page_store import PageStore
from octavo_engine.prefix_tree import PrefixTree
from octavo_engine.sequence import Sequence

# While the disk is full jobs are not done; the oldest ones are given up.
_MOST_JOBS = 256
# Pages copied between two steps, while answers run and while none does; a page takes some 0.1 ms.
_PAGES = 4
_PAGES_AT_REST = 32
_CLOSING_SECONDS = 2.0

ReadPage = Callable[[int, bool], bytes]


@dataclass(slots=True)
class _Job:
    """Tokens whose pages are to be kept for `owner`; `done` pages of them have been looked at."""

    tokens: list[int]
    owner: str
    keys: list[bytes] | None = None
    done: int = 0


class PageSaving:
    """The queue of what is to be kept."""

    def __init__(self, store: PageStore, pool: PagePool, tree: PrefixTree, read: ReadPage) -> None:
        """Keep pages of `tree` over `pool` in `store`; `read(page, on_host)` gives a page's bytes."""
        self._store = store
        self._tree = tree
        self._read = read
        self._pool = pool
        self._jobs: deque[_Job] = deque(maxlen=_MOST_JOBS)

    @property
    def has_work(self) -> bool:
        """Whether there is something to keep and the store takes it."""
        # A page that is still to be moved does not hold what the books say.
        return bool(self._jobs) and not self._pool.moves and self._store.root is not None and self._store.has_room

    def add(self, sequence: Sequence) -> None:
        """Keep the whole pages of what a sequence has computed, as far as the tree has them when their turn comes."""
        whole = sequence.computed - sequence.computed % self._pool.page_size
        if whole and sequence.is_stored:
            self._jobs.append(_Job(sequence.tokens[:whole], sequence.owner))

    def forget(self, owner: str) -> None:
        """Keep nothing for `owner` or who belongs to it."""
        self._jobs = deque((job for job in self._jobs if not belongs_to(job.owner, owner)), maxlen=_MOST_JOBS)

    def save(self, *, is_busy: bool) -> None:
        """Copy a few pages while answers run, more while none does."""
        pages = _PAGES if is_busy else _PAGES_AT_REST
        while pages > 0 and self.has_work:
            pages -= self._save_some(self._jobs[0], pages)

    def save_rest(self) -> None:
        """Copy what is left, as far as that goes in a short time: the pages are about to go."""
        until = time.monotonic() + _CLOSING_SECONDS
        while self.has_work and time.monotonic() < until:
            self.save(is_busy=False)

    def _save_some(self, job: _Job, most: int) -> int:
        root = self._store.root
        assert root is not None
        if job.keys is None:
            # Of what is longer than the disk tier the beginning is kept. It must not push itself out again.
            job.keys = page_keys(root, job.tokens, self._pool.page_size)[: self._store.capacity(self._pool.page_size)]
            self._store.use([key for key in job.keys if self._store.has(key)], job.owner)
        path, copied = self._tree.path(job.tokens), 0
        while job.done < len(job.keys) and copied < most and self._store.has_room:
            key = job.keys[job.done]
            if not self._store.has(key):
                start = job.done * self._pool.page_size
                tokens = tuple(job.tokens[start : start + self._pool.page_size])
                if job.done >= len(path) or path[job.done].tokens != tokens:
                    # Evicted meanwhile: what comes behind it could not be found.
                    break
                node = path[job.done]
                self._store.put(PageName(key, tokens), self._read(node.page, node.on_host), job.owner)
                copied += 1
            job.done += 1
        else:
            if job.done < len(job.keys):
                return max(copied, 1)
        self._store.use(job.keys[: job.done], job.owner)
        self._jobs.popleft()
        return max(copied, 1)
