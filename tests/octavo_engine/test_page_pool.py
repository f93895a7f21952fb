"""The page pool keeps its books: every page is free or taken, once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from octavo_engine.page_pool import PagePool
from octavo_engine.page_table import PageTable


@given(st.lists(st.integers(0, 3), max_size=60), st.integers(1, 12))
def test_taking_and_releasing_conserves_pages(actions: list[int], total: int) -> None:
    pool = PagePool(total, 16)
    tables = [PageTable(pool) for _ in range(3)]
    for action in actions:
        if action == 3:
            tables[0].release()
        elif pool.free:
            table = tables[action]
            table.cover(len(table.pages) * 16 + 1)
        assert pool.problems(page for table in tables for page in table.pages) == []
        assert pool.free + pool.used == total
    for table in tables:
        table.release()
    assert pool.free == total


def test_slots_follow_the_page_table() -> None:
    pool = PagePool(4, 16)
    table = PageTable(pool)
    table.cover(20)
    first, second = table.pages
    assert table.slots(14, 18) == [first * 16 + 14, first * 16 + 15, second * 16, second * 16 + 1]


def test_a_page_is_released_by_one_owner_only() -> None:
    pool = PagePool(2, 16)
    page = pool.take()
    pool.release([page])
    with pytest.raises(AssertionError, match="not taken"):
        pool.release([page])


def test_problems_are_found_and_healed() -> None:
    pool = PagePool(4, 16)
    kept, lost = pool.take(), pool.take()
    assert pool.problems([kept]) == ["1 pages are taken that nobody holds"]
    assert pool.problems([kept, kept, lost]) == [f"page {kept} is in two page tables"]
    pool.heal([kept])
    assert pool.problems([kept]) == []
    assert pool.free == 3
    assert lost in {pool.take() for _ in range(3)}
