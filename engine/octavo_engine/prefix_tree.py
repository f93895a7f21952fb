"""The prefix tree: cached pages by the tokens that they hold, so that a known beginning is not computed again.

A node is one page; its path from the root spells the tokens whose keys and values the page holds. Tokens are
compared, not hashes. Pages that the device needs for others move to the host pool, the second tier, and come back when
they are wanted: this is how preempted sequences are swapped. Knows no sequences and no tensors.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from octavo_engine.ownership import belongs_to
from octavo_engine.page_move import MoveKind, PageMove
from octavo_engine.page_pool import PagePool


@dataclass(eq=False, slots=True)
class Node:
    """One cached page.

    Attributes:
        tokens: the tokens in the page; only a leaf may have fewer than a page takes.
        page: its number in the device pool or, if `on_host`, in the host pool.
        on_host: whether it is in the second tier; the nodes before a node on the device are on the device.
        children: by first token.
        last_used: the tree's clock when the node was last matched or inserted.
        owners: names of those whose sequences computed or used it.
        id: unique in its tree.
    """

    tokens: tuple[int, ...]
    page: int
    parent: Node | None
    on_host: bool = False
    children: dict[int, list[Node]] = field(default_factory=dict)
    last_used: int = 0
    owners: set[str] = field(default_factory=set)
    id: int = 0


@dataclass(frozen=True, slots=True)
class Match:
    """A known beginning: `tokens` tokens on device pages, then on host nodes; the last may be known in part."""

    pages: tuple[int, ...]
    on_host: tuple[Node, ...]
    tokens: int

    def whole_pages(self, page_size: int) -> Match:
        """The match without a page that is known only in part."""
        count = self.tokens // page_size
        return Match(self.pages[:count], self.on_host[: max(0, count - len(self.pages))], count * page_size)


class PrefixTree:
    """Keeps pages in `pool` after their sequences have ended, until the pool needs them: least recently used first."""

    def __init__(self, pool: PagePool, host: PagePool | None = None, *, enabled: bool = True) -> None:
        """Make an empty tree and offer its pages to the pool; a tree that is not enabled keeps and finds nothing.

        With a `host` pool, pages that `pool` needs move there, and only what is least recently used there is dropped.
        """
        self._pool = pool
        self.host = host
        self.enabled = enabled
        self._root = Node((), -1, None)
        self._clock = itertools.count(1)
        self._ids = itertools.count(1)
        self._leaves = _LeafQueue(lambda node: not node.on_host and all(child.on_host for child in _children(node)))
        self._host_leaves = _LeafQueue(lambda node: node.on_host and not node.children)
        self.evictions = 0
        self.swaps = 0
        pool.reclaim = self.evict

    def match(self, tokens: Sequence[int], owner: str) -> Match:
        """The longest known beginning of `tokens`.

        The pages cover it in order; where its end lies within the last page, the rest of that page belongs to others,
        so that it must be copied before it is written to, as every page that the tree keeps.
        """
        if not self.enabled:
            return Match((), (), 0)
        now = next(self._clock)
        node, start = self._root, 0
        path: list[Node] = []
        while start < len(tokens):
            child, common = _best(node, tokens, start)
            if child is None or not common:
                break
            child.owners.add(owner)
            self._touch(child, now)
            path.append(child)
            start += common
            if common < self._pool.page_size:
                break
            node = child
        pages = tuple(each.page for each in path if not each.on_host)
        return Match(pages, tuple(path[len(pages) :]), start)

    def bring_in(self, nodes: Sequence[Node]) -> list[int]:
        """Move nodes of one path from the host to the device, each onto a page taken for the caller's page table.

        Returns:
            The pages; fewer than nodes where making room on the device has dropped some of them from the host.
        """
        pages: list[int] = []
        for node in nodes:
            page = self._pool.take()
            if node.parent is None:
                self._pool.release(page)
                break
            assert self.host is not None
            self._pool.moves.append(PageMove(MoveKind.IN, node.page, page))
            self.host.release(node.page)
            self._settle(node, page)
            self.swaps += 1
            pages.append(page)
        return pages

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
            elif child.on_host and len(part) == size:
                assert self.host is not None
                self.host.release(child.page)
                self._settle(child, page)
            child.owners.add(owner)
            self._touch(child, now)
            if len(part) < size:
                break
            path.append(child.page)
            node = child
        return path

    def evict(self) -> None:
        """Free a page that no table holds, the least recently used first; the caller knows that there is one."""
        node = self._leaves.pop(lambda node: not self._pool.holders(node.page))
        self._move_out(node)
        self.evictions += 1

    def swap_out(self, tokens: Sequence[int]) -> int:
        """Move the pages of a known beginning that nobody else needs to the host; how many have moved."""
        moved = 0
        for node in reversed(self.path(tokens)):
            if node.on_host:
                continue
            if self._pool.holders(node.page) or any(not child.on_host for child in _children(node)):
                break
            self._move_out(node)
            moved += 1
        return moved

    def discard(self, tokens: Sequence[int], owner: str) -> int:
        """Drop the pages at the end of a known beginning that nobody but `owner` needs; how many became free."""
        dropped = 0
        for node in reversed(self.path(tokens)):
            held = not node.on_host and self._pool.holders(node.page)
            if held or node.children or node.owners != {owner}:
                break
            self._remove(node)
            dropped += 1
        return dropped

    def path(self, tokens: Sequence[int]) -> list[Node]:
        """The nodes of the longest known beginning of `tokens`, in order; the last may agree in part only."""
        path: list[Node] = []
        node, start = self._root, 0
        while start < len(tokens):
            child, common = _best(node, tokens, start)
            if child is None or not common:
                break
            path.append(child)
            node, start = child, start + common
            if common < self._pool.page_size:
                break
        return path

    def _move_out(self, node: Node) -> None:
        """Take a node off the device: to the host where there is one, otherwise out of the tree."""
        if self.host is None:
            self._remove(node)
            return
        if not self.host.free:
            self._remove(self._host_leaves.pop(lambda _: True))
        target = self.host.take()
        self._pool.moves.append(PageMove(MoveKind.OUT, node.page, target))
        self._pool.drop(node.page)
        node.page, node.on_host = target, True
        self.swaps += 1
        self._queue(node)
        if node.parent is not None:
            self._queue(node.parent)

    def _settle(self, node: Node, page: int) -> None:
        """Put a node that was on the host onto a device page that is held."""
        node.page, node.on_host = page, False
        self._pool.keep(page)
        self._queue(node)

    def shrink_host(self, pages: int) -> None:
        """Drop what is least recently used on the host until at most `pages` pages are there."""
        while self.host is not None and self.host.used > pages:
            self._remove(self._host_leaves.pop(lambda _: True))

    def renumber(self, device: Mapping[int, int], host: Mapping[int, int]) -> None:
        """Follow the pages to their new numbers."""
        for node in self.nodes():
            node.page = (host if node.on_host else device)[node.page]

    def forget(self, owner: str) -> int:
        """Drop the pages that only `owner` or one below it used and that no page table holds; how many became free."""
        for node in self.nodes():
            node.owners = {name for name in node.owners if not belongs_to(name, owner)}
        return self._remove_where(lambda node: not node.owners)

    def clear(self) -> int:
        """Drop every page that no page table holds; the number of pages that became free."""
        return self._remove_where(lambda _: True)

    def _remove_where(self, unwanted: Callable[[Node], bool]) -> int:
        """Remove unwanted leaves, and what becomes a leaf by it, that no table holds; the number of pages freed."""
        removed = 0
        for node in reversed(list(self.nodes())):
            held = not node.on_host and self._pool.holders(node.page)
            if not node.children and not held and unwanted(node):
                self._remove(node)
                removed += 1
        return removed

    def tokens_of(self, page: int, *, on_host: bool = False) -> tuple[int, ...]:
        """The tokens that a page holds; none if the tree does not keep it."""
        return next((node.tokens for node in self.nodes() if node.page == page and node.on_host == on_host), ())

    def problems(self) -> list[str]:
        """What is wrong with the host pool and the order of the tiers: one sentence a fault."""
        found = []
        if self.host is not None:
            found = [f"host: {problem}" for problem in self.host.problems(self._host_pages(), [])]
        for node in self.nodes():
            if not node.on_host and node.parent is not None and node.parent.on_host:
                found.append(f"page {node.page} is on the device and the one before it on the host")
        return found

    def heal(self) -> None:
        """Make the host pool agree with the tree."""
        if self.host is not None:
            self.host.heal(self._host_pages(), [])

    def _host_pages(self) -> list[int]:
        return [node.page for node in self.nodes() if node.on_host]

    def nodes(self) -> Iterator[Node]:
        """All nodes, each before its children."""
        waiting = [self._root]
        while waiting:
            node = waiting.pop()
            if node.parent is not None:
                yield node
            waiting.extend(_children(node))

    def _add(self, parent: Node, part: tuple[int, ...], page: int) -> Node:
        siblings = parent.children.setdefault(part[0], [])
        for sibling in [node for node in siblings if node.tokens == part[: len(node.tokens)]]:
            self._remove(sibling)
        node = Node(part, page, parent, id=next(self._ids))
        # Removing the last sibling takes the list away with it.
        parent.children.setdefault(part[0], []).append(node)
        self._pool.keep(page)
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
        if node.on_host:
            assert self.host is not None
            self.host.release(node.page)
        else:
            self._pool.drop(node.page)
        self._queue(parent)

    def _touch(self, node: Node, now: int) -> None:
        node.last_used = now
        self._queue(node)

    def _queue(self, node: Node) -> None:
        if node.parent is not None:
            (self._host_leaves if node.on_host else self._leaves).push(node)


class _LeafQueue:
    """Leaves by last use; an entry that a later use, a child or a move has made stale is skipped."""

    def __init__(self, is_leaf: Callable[[Node], bool]) -> None:
        self._is_leaf = is_leaf
        self._heap: list[tuple[int, int, Node]] = []
        self._serial = itertools.count()
        self._compacted = 0

    def push(self, node: Node) -> None:
        if self._is_leaf(node):
            heapq.heappush(self._heap, (node.last_used, next(self._serial), node))
            if len(self._heap) > 2 * self._compacted + 64:
                self._compact()

    def pop(self, wanted: Callable[[Node], bool]) -> Node:
        """The least recently used leaf that is wanted; the caller knows that there is one."""
        passed = []
        while True:
            entry = heapq.heappop(self._heap)
            if not self._is_current(entry):
                continue
            if wanted(entry[2]):
                break
            passed.append(entry)
        for other in passed:
            heapq.heappush(self._heap, other)
        return entry[2]

    def _is_current(self, entry: tuple[int, int, Node]) -> bool:
        last_used, _, node = entry
        return node.parent is not None and node.last_used == last_used and self._is_leaf(node)

    def _compact(self) -> None:
        self._heap = list({id(entry[2]): entry for entry in self._heap if self._is_current(entry)}.values())
        heapq.heapify(self._heap)
        self._compacted = len(self._heap)


def _children(node: Node) -> Iterator[Node]:
    return itertools.chain.from_iterable(node.children.values())


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
