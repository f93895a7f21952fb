"""An immutable picture of the page pool: which page is in which state, whose it is, how full. Knows no tensors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

POOLS = ("device", "host")
STATES = ("free", "private", "shared", "cached", "swapped")


@dataclass(frozen=True, slots=True)
class PageInfo:
    """One page.

    Attributes:
        pool: "device" or "host".
        index: its number in the pool.
        state: free, private (one page table), shared (two or more), cached (only the prefix tree) or swapped.
        refcount: page tables that hold it; the prefix tree does not count.
        filled: positions of it that have keys and values.
        last_used: the engine's clock when it was last written to, matched or inserted; 0 for never.
        owners: names of those whose sequences hold it or computed it.
    """

    pool: str
    index: int
    state: str
    refcount: int
    filled: int
    last_used: int
    owners: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class PageMap:
    """All pages at one moment, as read-only arrays with one entry a page; indexing builds `PageInfo` when asked.

    Attributes:
        version: grows with every map that the engine publishes.
        pages: int32: number of each page in its pool.
        pool: uint8 index into `POOLS`; state: uint8 index into `STATES`.
        refcount, filled, last_used: see `PageInfo`.
        owner_starts: int64 [entries + 1]: where each entry's owners begin in `owner_ids`.
        owner_ids: int32 index into `owner_names`.
    """

    version: int
    pages: npt.NDArray[np.int32]
    pool: npt.NDArray[np.uint8]
    state: npt.NDArray[np.uint8]
    refcount: npt.NDArray[np.int32]
    filled: npt.NDArray[np.int32]
    last_used: npt.NDArray[np.int64]
    owner_starts: npt.NDArray[np.int64]
    owner_ids: npt.NDArray[np.int32]
    owner_names: tuple[str, ...]

    def __len__(self) -> int:
        """Number of pages."""
        return len(self.state)

    def __getitem__(self, entry: int) -> PageInfo:
        """The page of an entry; negative entries count from the end."""
        entry = range(len(self))[entry]
        owners = self.owner_ids[self.owner_starts[entry] : self.owner_starts[entry + 1]]
        return PageInfo(
            pool=POOLS[self.pool[entry]],
            index=int(self.pages[entry]),
            state=STATES[self.state[entry]],
            refcount=int(self.refcount[entry]),
            filled=int(self.filled[entry]),
            last_used=int(self.last_used[entry]),
            owners=tuple(self.owner_names[owner] for owner in owners),
        )

    def __iter__(self) -> Iterator[PageInfo]:
        """All pages in order."""
        return (self[entry] for entry in range(len(self)))


@dataclass(frozen=True, slots=True)
class TableView:
    """A running sequence's pages: its owner, its page table, and how many positions have been computed."""

    owner: str
    pages: tuple[int, ...]
    computed: int


@dataclass(frozen=True, slots=True)
class NodeView:
    """A page of the prefix tree: tokens in it, its last use, its owners, and whether it lies in the host pool."""

    page: int
    tokens: int
    last_used: int
    owners: frozenset[str]
    on_host: bool


def build_page_map(
    version: int,
    tables: Sequence[TableView],
    nodes: Sequence[NodeView],
    *,
    device_pages: int,
    host_pages: int,
    page_size: int,
) -> PageMap:
    """The map of a device pool and a host pool, whose pages have `page_size` positions; the device's come first."""
    total = device_pages + host_pages
    refcount = np.zeros(total, np.int32)
    filled = np.zeros(total, np.int32)
    last_used = np.zeros(total, np.int64)
    kept = np.zeros(total, bool)
    names: dict[str, int] = {}
    owned: set[tuple[int, int]] = set()
    for node in nodes:
        entry = node.page + device_pages * node.on_host
        kept[entry], filled[entry], last_used[entry] = True, node.tokens, node.last_used
        owned.update((entry, names.setdefault(name, len(names))) for name in node.owners)
    for table in tables:
        pages = np.asarray(table.pages, np.int64)
        refcount[pages] += 1
        ends = table.computed - np.arange(len(pages)) * page_size
        filled[pages] = np.maximum(filled[pages], np.clip(ends, 0, page_size))
        owner = names.setdefault(table.owner, len(names))
        owned.update((page, owner) for page in table.pages)
    pairs = np.asarray(sorted(owned), np.int64).reshape(-1, 2)
    number = {name: index for index, name in enumerate(STATES)}
    on_host = np.arange(total) >= device_pages
    held = np.where(refcount > 1, number["shared"], number["private"])
    idle = np.where(kept, np.where(on_host, number["swapped"], number["cached"]), number["free"])
    arrays: dict[str, npt.NDArray[Any]] = {
        "pages": (np.arange(total) - device_pages * on_host).astype(np.int32),
        "pool": on_host.astype(np.uint8),
        "state": np.where(refcount > 0, held, idle).astype(np.uint8),
        "refcount": refcount,
        "filled": filled,
        "last_used": last_used,
        "owner_starts": np.searchsorted(pairs[:, 0], np.arange(total + 1)).astype(np.int64),
        "owner_ids": pairs[:, 1].astype(np.int32),
    }
    for array in arrays.values():
        array.flags.writeable = False
    return PageMap(version=version, owner_names=tuple(names), **arrays)
