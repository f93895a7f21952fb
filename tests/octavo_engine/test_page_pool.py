"""The page pool keeps its books: every page is free, held or cached, and never two of them."""

import pytest

from octavo_engine.page_move import MoveKind, PageMove
from octavo_engine.page_pool import PagePool
from octavo_engine.page_table import PageTable


def test_a_shared_page_is_free_when_the_last_holder_lets_go() -> None:
    pool = PagePool(2, 16)
    page = pool.take()
    pool.share(page)
    pool.release(page)
    assert (pool.free, pool.used) == (1, 1)
    pool.release(page)
    assert (pool.free, pool.used) == (2, 0)


def test_a_kept_page_is_cached_until_it_is_dropped() -> None:
    pool = PagePool(2, 16)
    page = pool.take()
    pool.keep(page)
    pool.release(page)
    assert (pool.free, pool.used, pool.cached, pool.available) == (1, 0, 1, 2)
    pool.share(page)
    assert (pool.used, pool.cached) == (1, 0)
    pool.drop(page)
    assert (pool.free, pool.used) == (1, 1)
    pool.release(page)
    assert pool.free == 2


def test_a_page_cannot_be_released_twice_or_shared_when_free() -> None:
    pool = PagePool(2, 16)
    page = pool.take()
    pool.release(page)
    with pytest.raises(AssertionError, match="no holder"):
        pool.release(page)
    with pytest.raises(AssertionError, match="is free"):
        pool.share(page)


def test_slots_follow_the_page_table() -> None:
    pool = PagePool(4, 16)
    table = PageTable(pool)
    assert table.needed(0, 20) == 2
    table.prepare(0, 20)
    assert pool.take_moves() == ()
    first, second = table.pages
    assert table.slots(14, 18) == [first * 16 + 14, first * 16 + 15, second * 16, second * 16 + 1]


def test_the_first_writer_copies_and_the_last_sharer_writes_in_place() -> None:
    pool = PagePool(8, 16)
    tables = [PageTable(pool)]
    tables[0].prepare(0, 20)
    tables += [tables[0].fork(20), tables[0].fork(20)]
    shared = tables[0].pages[1]
    assert pool.used == 2
    assert [table.needed(20, 21) for table in tables] == [1, 1, 1]
    for table in tables:
        table.prepare(20, 21)
    assert pool.take_moves() == tuple(PageMove(MoveKind.COPY, shared, table.pages[1]) for table in tables[:2])
    assert tables[2].pages[1] == shared
    assert pool.used == 4


def test_problems_are_found_and_healed() -> None:
    pool = PagePool(4, 16)
    kept, lost = pool.take(), pool.take()
    pool.keep(kept)
    assert pool.problems([kept, lost], [kept]) == []
    assert pool.problems([kept], [kept]) == [
        f"page {lost} counts 1 holders and has 0",
        "2 pages are listed as free and 3 are",
    ]
    assert pool.problems([kept, lost], []) == [f"page {kept} is marked as kept"]
    pool.heal([kept], [kept])
    assert pool.problems([kept], [kept]) == []
    assert lost in {pool.take() for _ in range(3)}
