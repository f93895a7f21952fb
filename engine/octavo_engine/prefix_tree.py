"""The prefix tree: cached pages by the tokens that they hold, so that a known beginning is not computed again.

A node is one page; its path from the root spells the tokens whose keys and values the page holds. Tokens are
compared, not hashes. Knows no sequences and no tensors.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from octavo_engine.page_pool import PagePool


@dataclass(eq=False, slots=True)
class Node:
    """One cached page.

    Attributes:
        tokens: the tokens in the page; only a leaf may have fewer than a page takes.
        children: by first token.
        last_used: the tree's clock when the node was last matched or inserted.
        owners: names of those whose sequences computed or used it.
    """

    tokens: tuple[int, ...]
    page: int
    parent: Node | None
    children: dict[int, list[Node]] = field(default_factory=dict)
    last_used: int = 0
    owners: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Match:
    """A known beginning: whole pages to share, and perhaps a part of one more, to be copied."""

    pages: tuple[int, ...]
    tokens: int

    def whole_pages(self, page_size: int) -> Match:
        """The match without a page that is known only in part."""
        count = self.tokens // page_size
        return Match(self.pages[:count], count * page_size)


class PrefixTree:
    """Keeps pages in `pool` after their sequences have ended, until the pool needs them: least recently used first."""

    def __init__(self, pool: PagePool, *, enabled: bool = True) -> None:
        """Make an empty tree and offer its pages to the pool; a tree that is not enabled keeps and finds nothing."""
        self._pool = pool
        self.enabled = enabled
        self._root = Node((), -1, None)
        self._clock = itertools.count(1)
        self._serial = itertools.count()
        # A heap of (last_used, serial, leaf); entries that a later use or a child has made stale are skipped.
        self._leaves: list[tuple[int, int, Node]] = []
        self._size = 0
        self.evictions = 0
        pool.reclaim = self.evict

    def match(self, tokens: Sequence[int], owner: str) -> Match:
        """The longest known beginning of `tokens`.

        The pages cover it in order; where its end lies within the last page, the rest of that page belongs to others,
        so that it must be copied before it is written to, as every page that the tree keeps.
        """
        if not self.enabled:
            return Match((), 0)
        now = next(self._clock)
        node, start, pages = self._root, 0, []
        while start < len(tokens):
            child, common = _best(node, tokens, start)
            if child is None or not common:
                break
            child.owners.add(owner)
            self._touch(child, now)
            pages.append(child.page)
            start += common
            if common < self._pool.page_size:
                break
            node = child
        return Match(tuple(pages), start)

    def insert(self, tokens: Sequence[int], pages: Sequence[int], owner: str) -> list[int]:
        """Keep the pages that hold `tokens`, whose keys and values have been written.

        A page whose tokens are known already is not kept twice; a partly filled page replaces shorter ones.

        Returns:
            The pages that the tree keeps for the whole pages of `tokens`: the given ones, or those that it knew before.
            A table that goes on must hold these, so that no page of the tree outlives the pages before it.
        """
        if not self.enabled:
            return list(pages)
        path: list[int] = []
        now, size = next(self._clock), self._pool.page_size
        node = self._root
        for index, page in zip(range(0, len(tokens), size), pages, strict=False):
            part = tuple(tokens[index : index + size])
            child, common = _best(node, part, 0)
            if child is None or common < len(part):
                child = self._add(node, part, page)
            child.owners.add(owner)
            self._touch(child, now)
            if len(part) < size:
                break
            path.append(child.page)
            node = child
        return path

    def evict(self) -> None:
        """Drop the least recently used leaf that no page table holds; the caller knows that there is one."""
        pinned = []
        while True:
            entry = heapq.heappop(self._leaves)
            last_used, _, node = entry
            if node.parent is None or node.children or last_used != node.last_used:
                continue
            if not self._pool.holders(node.page):
                break
            pinned.append(entry)
        for entry in pinned:
            heapq.heappush(self._leaves, entry)
        self._remove(node)
        self.evictions += 1

    def forget(self, owner: str) -> int:
        """Drop the pages that only `owner` computed or used and no page table holds; how many became free."""
        before = self._pool.free
        for node in reversed(list(self.nodes())):
            node.owners.discard(owner)
            if not node.owners and not node.children and not self._pool.holders(node.page):
                self._remove(node)
        return self._pool.free - before

    def clear(self) -> int:
        """Drop every page that no page table holds; the number of pages that became free."""
        before = self._pool.free
        for node in reversed(list(self.nodes())):
            if not node.children and not self._pool.holders(node.page):
                self._remove(node)
        return self._pool.free - before

    def tokens_of(self, page: int) -> tuple[int, ...]:
        """The tokens that a page holds; none if the tree does not keep it."""
        return next((node.tokens for node in self.nodes() if node.page == page), ())

    def nodes(self) -> Iterator[Node]:
        """All nodes, each before its children."""
        waiting = [self._root]
        while waiting:
            node = waiting.pop()
            if node.parent is not None:
                yield node
            waiting.extend(child for siblings in node.children.values() for child in siblings)

    def _add(self, parent: Node, part: tuple[int, ...], page: int) -> Node:
        siblings = parent.children.setdefault(part[0], [])
        for sibling in [node for node in siblings if node.tokens == part[: len(node.tokens)]]:
            self._remove(sibling)
        node = Node(part, page, parent)
        # Removing the last sibling takes the list away with it.
        parent.children.setdefault(part[0], []).append(node)
        self._pool.keep(page)
        self._size += 1
        return node

    def _remove(self, node: Node) -> None:
        parent = node.parent
        assert parent is not None
        assert not node.children
        siblings = parent.children[node.tokens[0]]
        siblings.remove(node)
        if not siblings:
            del parent.children[node.tokens[0]]
        node.parent = None
        self._size -= 1
        self._pool.drop(node.page)
        if parent.parent is not None and not parent.children:
            self._push(parent)

    def _touch(self, node: Node, now: int) -> None:
        node.last_used = now
        self._push(node)

    def _push(self, node: Node) -> None:
        if not node.children:
            heapq.heappush(self._leaves, (node.last_used, next(self._serial), node))
        if len(self._leaves) > 2 * self._size + 64:
            current = {(node.last_used, node.page): (used, serial, node) for used, serial, node in self._leaves}
            self._leaves = [e for e in current.values() if e[2].parent and not e[2].children and e[0] == e[2].last_used]
            heapq.heapify(self._leaves)


def _best(node: Node, tokens: Sequence[int], start: int) -> tuple[Node | None, int]:
    """The child that shares the most tokens with `tokens` from `start` on, and how many."""
    best, most = None, 0
    for child in node.children.get(tokens[start], ()):
        part = tokens[start : start + len(child.tokens)]
        common = next(
            (i for i, (mine, its) in enumerate(zip(part, child.tokens, strict=False)) if mine != its), len(part)
        )
        if common > most:
            best, most = child, common
    return best, most
