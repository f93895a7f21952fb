"""The disk tier: an index of the pages in one folder, and a thread that reads and writes them. Knows no tensors.

Several models may share a folder: a key names the model too. What the index does not know is never read; what turns out
to be damaged is removed. A full disk costs pages, never an answer.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from octavo_engine.ownership import belongs_to
from octavo_engine.page_store.owner_lists import OwnerLists
from octavo_engine.page_store.page_file import (
    SUFFIX,
    DamagedPage,
    PageName,
    file_name,
    file_size,
    read_page,
    write_page,
)
from octavo_engine.page_store.private_file import UNFINISHED

_log = logging.getLogger(__name__)
# Bytes that may wait to be written; who has more to keep waits.
_BACKLOG = 64 << 20
# After a failed write the disk is left alone for so long.
_REST_SECONDS = 30.0
_CLOSING_SECONDS = 3.0

Loaded = Callable[[list[bytearray]], None]


@dataclass(slots=True)
class _Entry:
    """A page that is on disk, or will be when `stored`; the oldest entry of the index goes first."""

    size: int = 0
    stored: bool = False
    owners: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class _Read:
    names: tuple[PageName, ...]
    done: Loaded


class PageStore:
    """Pages of `payload_bytes` bytes each; at most `limit` bytes of files, least recently used ones go first.

    Attributes:
        root: the key before the first page; None until it is known, and nothing is kept or found before.
        problem: why nothing can be kept at the moment, a sentence for people; None when all is well.
        on_change: called on the store's thread when a page has been written.
        is_closing: whether tasks should end; long ones look at it.
    """

    def __init__(self, folder: Path, *, payload_bytes: int, limit: int) -> None:
        """Open the folder, making it if need be, and start the thread.

        Pages that nobody owns and unfinished files are removed. A folder that cannot be used is a `problem`, no error.
        """
        self.root: bytes | None = None
        self.problem: str | None = None
        self.limit = limit
        self._folder = folder
        self._payload_bytes = payload_bytes
        self.on_change: Callable[[], None] = lambda: None
        self._lists = OwnerLists(folder)
        self._index: OrderedDict[bytes, _Entry] = OrderedDict()
        self._bytes = 0
        self._stored = 0
        self._backlog = 0
        self._rests_until = 0.0
        # What the thread does, in this order.
        self._tasks: deque[Callable[[], None]] = deque()
        self._reads: deque[_Read] = deque()
        self._writes: deque[Callable[[], None]] = deque()
        self._is_busy = False
        self.is_closing = False
        self._changed = threading.Condition(threading.RLock())
        self._closed = False
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._open()
        except OSError as fault:
            self._fail(fault)
        self._thread = threading.Thread(target=self._run, name="octavo-pages", daemon=True)
        self._thread.start()

    @property
    def pages(self) -> int:
        """Number of pages on disk."""
        return self._stored

    @property
    def file_bytes(self) -> int:
        """Bytes of the files."""
        return self._bytes

    @property
    def has_room(self) -> bool:
        """Whether more pages may be queued: the disk keeps up and takes them."""
        return self._backlog < _BACKLOG and time.monotonic() >= self._rests_until and not self._closed

    def capacity(self, page_size: int) -> int:
        """How many pages of `page_size` tokens the limit allows."""
        return self.limit // file_size(page_size, self._payload_bytes)

    def run(self, task: Callable[[], None]) -> None:
        """Do something long on the store's thread, before the next page."""
        with self._changed:
            self._tasks.append(task)
            self._changed.notify_all()

    def known(self, keys: Sequence[bytes]) -> int:
        """How many of the first `keys` are on disk without a gap."""
        with self._changed:
            for count, key in enumerate(keys):
                entry = self._index.get(key)
                if entry is None or not entry.stored:
                    return count
            return len(keys)

    def has(self, key: bytes) -> bool:
        """Whether a page is on disk or about to be."""
        return key in self._index

    def fetch(self, names: Sequence[PageName], done: Loaded) -> None:
        """Read pages and call `done` on the store's thread with those before the first that could not be read."""
        with self._changed:
            if not self._closed:
                self._reads.append(_Read(tuple(names), done))
                self._changed.notify_all()
                return
        done([])

    def put(self, name: PageName, payload: bytes, owner: str) -> None:
        """Queue a page to be written for `owner`."""
        with self._changed:
            if not self.has_room or len(payload) != self._payload_bytes:
                return
            self._index[name.key] = _Entry(owners={owner})
            self._backlog += len(payload)
            self._writes.append(lambda: self._write(name, payload, owner))
            self._changed.notify_all()

    def use(self, keys: Sequence[bytes], owner: str) -> None:
        """Note that `owner` needs the pages of one beginning, and that they are the last ones to go."""
        with self._changed:
            new = [key for key in keys if key in self._index and owner not in self._index[key].owners]
            for key in new:
                self._index[key].owners.add(owner)
            self._writes.append(lambda: self._note(new, owner))
            self._writes.append(lambda: self._touch(keys))
            self._changed.notify_all()

    def forget(self, owner: str) -> int:
        """Remove what only `owner`, or who belongs to it, needs; the number of pages removed."""
        with self._changed:
            forgotten = {name for entry in self._index.values() for name in entry.owners if belongs_to(name, owner)}
            orphans = []
            for key, entry in self._index.items():
                entry.owners -= forgotten
                if not entry.owners:
                    orphans.append(key)
            for key in orphans:
                self._remove(key)
            try:
                for name in forgotten | {owner}:
                    self._lists.remove(name)
            except OSError as fault:
                self._fail(fault)
            return len(orphans)

    def flush(self, timeout: float) -> bool:
        """Wait until everything queued is written; False when `timeout` seconds were not enough."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._writes and not self._is_busy, timeout)

    def close(self) -> None:
        """Write what is queued, as far as that goes in a few seconds, and end the thread. Idempotent."""
        self.is_closing = True
        self.flush(_CLOSING_SECONDS)
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _open(self) -> None:
        """Build the index from the folder, oldest page first."""
        owners = self._lists.read()
        files = []
        for entry in os.scandir(self._folder):
            if entry.name.endswith(UNFINISHED):
                _unlink(Path(entry.path))
            elif entry.name.endswith(SUFFIX):
                status = entry.stat()
                files.append((status.st_mtime_ns, entry.name, status.st_size))
        for _, name, size in sorted(files):
            key = _key(name)
            if key is None:
                _unlink(self._folder / name)
                continue
            self._index[key] = _Entry()
            self._count(self._index[key], size)
        for owner, keys in owners.items():
            present = keys & self._index.keys()
            for key in present:
                self._index[key].owners.add(owner)
            if len(present) < len(keys):
                self._lists.rewrite(owner, present)
        for key in [key for key, entry in self._index.items() if not entry.owners]:
            self._remove(key)
        self._shrink()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._tasks or self._reads or self._writes or self._closed)
                if self._closed:
                    break
                task = self._next()
                self._is_busy = True
            task()
            with self._changed:
                self._is_busy = False
                self._changed.notify_all()
        # Nobody adds anything any more.
        for read in self._reads:
            read.done([])
        self._writes.clear()

    def _next(self) -> Callable[[], None]:
        """Tasks come first, then pages that somebody waits for, then pages to be kept."""
        if self._tasks:
            return self._tasks.popleft()
        if self._reads:
            read = self._reads.popleft()
            return lambda: read.done(self._read(read.names))
        return self._writes.popleft()

    def _read(self, names: tuple[PageName, ...]) -> list[bytearray]:
        pages: list[bytearray] = []
        for name in names:
            path = self._folder / file_name(name.key)
            try:
                pages.append(read_page(path, name, self._payload_bytes))
            except (DamagedPage, OSError) as fault:
                _log.warning("a page on disk is not used: %s", fault)
                with self._changed:
                    self._remove(name.key)
                break
        self._touch([name.key for name in names[: len(pages)]])
        return pages

    def _touch(self, keys: Sequence[bytes]) -> None:
        """Mark pages as used, the last one first: without its beginning a page cannot be found."""
        # The clock of a file system stands still for milliseconds.
        now = time.time_ns()
        with self._changed:
            for later, key in enumerate(reversed(keys)):
                if key in self._index:
                    self._index.move_to_end(key)
                    if self._index[key].stored:
                        _mark(self._folder / file_name(key), now + later)

    def _write(self, name: PageName, payload: bytes, owner: str) -> None:
        path = self._folder / file_name(name.key)
        size = 0
        if name.key in self._index and time.monotonic() >= self._rests_until:
            # A page without an owner would go when the folder is opened again.
            self._note([name.key], owner)
            try:
                size = write_page(path, name, payload)
                self.problem = None
            except OSError as fault:
                self._fail(fault)
        with self._changed:
            entry = self._index.get(name.key)
            if entry is None:
                # Forgotten while it was written.
                _unlink(path)
            elif size:
                self._count(entry, size)
                self._shrink()
            else:
                self._remove(name.key)
            self._backlog -= len(payload)
        self.on_change()

    def _fail(self, fault: OSError) -> None:
        self._rests_until = time.monotonic() + _REST_SECONDS
        problem = f"Pages cannot be kept on disk: {fault.strerror or fault} ({self._folder})."
        if problem != self.problem:
            _log.warning("%s", problem)
        self.problem = problem

    def _note(self, keys: Iterable[bytes], owner: str) -> None:
        """Append to an owner's list what has not been forgotten meanwhile."""
        with self._changed:
            wanted = [key for key in keys if key in self._index and owner in self._index[key].owners]
            try:
                if wanted:
                    self._lists.add(owner, wanted)
            except OSError as fault:
                self._fail(fault)

    def _count(self, entry: _Entry, size: int) -> None:
        entry.size, entry.stored = size, True
        self._bytes += size
        self._stored += 1

    def _shrink(self) -> None:
        """Remove the least recently used pages until the rest is within the limit."""
        while self._bytes > self.limit:
            self._remove(next(key for key, entry in self._index.items() if entry.stored))

    def _remove(self, key: bytes) -> None:
        entry = self._index.pop(key, None)
        if entry is not None and entry.stored:
            self._bytes -= entry.size
            self._stored -= 1
            _unlink(self._folder / file_name(key))


def forget_stored(folder: str | os.PathLike[str], owner: str) -> int:
    """Remove what only `owner`, or who belongs to it, needs from a folder that no engine has open; pages removed."""
    if not Path(folder).is_dir():
        return 0
    store = PageStore(Path(folder), payload_bytes=0, limit=sys.maxsize)
    try:
        return store.forget(owner)
    finally:
        store.close()


def _key(name: str) -> bytes | None:
    try:
        key = bytes.fromhex(name.removesuffix(SUFFIX))
    except ValueError:
        return None
    return key if len(key) == 32 and file_name(key) == name else None


def _unlink(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as fault:
        _log.warning("a page on disk cannot be removed: %s", fault)


def _mark(path: Path, nanoseconds: int) -> None:
    try:
        os.utime(path, ns=(nanoseconds, nanoseconds))
    except OSError as fault:
        _log.info("a page on disk cannot be marked as used: %s", fault)
