"""The prefix tree finds the longest known beginning, keeps nothing twice and gives way to the pool."""

from hypothesis import given
from hypothesis import strategies as st

from octavo_engine.page_pool import PagePool
from octavo_engine.page_table import PageTable
from octavo_engine.prefix_tree import PrefixTree


def computed(pool: PagePool, tree: PrefixTree, tokens: list[int], owner: str = "a") -> list[int]:
    """What a sequence that computes `tokens` and ends leaves behind; its pages."""
    table = PageTable(pool)
    table.prepare(0, len(tokens))
    pages = list(table.pages)
    tree.insert(tokens, pages, owner)
    table.release()
    return pages


def test_whole_and_partial_pages_are_found() -> None:
    pool = PagePool(16, 16)
    tree = PrefixTree(pool)
    pages = computed(pool, tree, list(range(40)))
    assert pool.cached == 3
    match = tree.match([*range(36), 99, 98], "b")
    assert (match.pages, match.tokens) == (tuple(pages), 36)
    assert tree.match([*range(16), 99], "b").pages == (pages[0],)
    assert tree.match([5, 6], "b").tokens == 0


def test_a_longer_partial_page_replaces_a_shorter_one_and_nothing_is_kept_twice() -> None:
    pool = PagePool(16, 16)
    tree = PrefixTree(pool)
    computed(pool, tree, list(range(20)))
    longer = computed(pool, tree, list(range(24)))
    assert pool.cached == 2
    assert tree.match(list(range(24)), "a").pages[1] == longer[1]
    computed(pool, tree, list(range(18)))
    assert pool.cached == 2
    computed(pool, tree, [*range(20), 77])
    assert pool.cached == 3


def test_the_least_recently_used_leaf_goes_first() -> None:
    pool = PagePool(4, 16)
    tree = PrefixTree(pool)
    old = computed(pool, tree, [1] * 32)
    new = computed(pool, tree, [2] * 32)
    tree.match([1] * 32, "a")
    assert pool.free == 0
    assert pool.take() == new[1]
    assert pool.take() == new[0]
    assert pool.take() == old[1]
    assert tree.match([1] * 32, "a").tokens == 16
    assert tree.evictions == 3


def test_held_pages_are_not_evicted() -> None:
    pool = PagePool(3, 16)
    tree = PrefixTree(pool)
    held = computed(pool, tree, [1] * 16)
    table = PageTable(pool, tree.match([1] * 16, "a").pages)
    other = computed(pool, tree, [2] * 32)
    tree.match([2] * 32, "a")
    assert {pool.take(), pool.take()} == set(other)
    assert table.pages == held
    assert pool.available == 0


def test_clear_frees_what_nobody_holds() -> None:
    pool = PagePool(8, 16)
    tree = PrefixTree(pool)
    computed(pool, tree, [1] * 40)
    table = PageTable(pool, tree.match([1] * 16, "a").pages)
    assert tree.clear() == 2
    assert (pool.used, pool.cached) == (1, 0)
    table.release()
    assert tree.clear() == 1
    assert pool.free == 8


def test_a_tree_that_is_not_enabled_keeps_nothing() -> None:
    pool = PagePool(8, 16)
    tree = PrefixTree(pool, enabled=False)
    computed(pool, tree, [1] * 40)
    assert pool.free == 8
    assert tree.match([1] * 40, "a").tokens == 0


@given(st.lists(st.lists(st.integers(0, 1), max_size=12), min_size=1, max_size=12))
def test_matches_equal_the_longest_common_beginning(texts: list[list[int]]) -> None:
    pool = PagePool(200, 4)
    tree = PrefixTree(pool)
    for index, tokens in enumerate(texts):
        expected = max((_common(tokens, known) for known in texts[:index]), default=0)
        assert tree.match(tokens, "a").tokens == expected
        computed(pool, tree, tokens)
        kept = [node.page for node in tree.nodes()]
        assert pool.problems([], kept) == []
        assert len({tuple(_path(node)) for node in tree.nodes()}) == len(kept)
    tree.clear()
    assert pool.free == 200


def _common(a: list[int], b: list[int]) -> int:
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def _path(node: object) -> list[int]:
    tokens: list[int] = []
    while getattr(node, "parent", None) is not None:
        tokens = [*node.tokens, *tokens]  # type: ignore[attr-defined]
        node = node.parent  # type: ignore[attr-defined]
    return tokens
