"""The page map and the prefix tree tell the truth about the pool."""

from collections.abc import Iterator

import pytest

from octavo_engine import Delta, FakeEngine, GenerationRequest, InvalidRequest, Preempted, SamplingParams


@pytest.fixture
def engine() -> Iterator[FakeEngine]:
    engine = FakeEngine(script="answer " * 400, tokens_per_second=20_000, pages=64)
    yield engine
    engine.close()


def test_states_owners_and_filling_of_shared_and_private_pages(engine: FakeEngine) -> None:
    parent = engine.submit(GenerationRequest(prompt="p" * 40, owner="chat/1"))
    deltas = (event for event in parent.events(5) if isinstance(event, Delta))
    next(deltas)
    engine.pause()
    forks = parent.fork(2, owner="chat/2", sampling=SamplingParams(max_tokens=500))
    engine.resume()
    for fork in forks:
        next(event for event in fork.events(5) if isinstance(event, Delta))
    engine.pause()
    page_map = engine.page_map()
    assert len(page_map) == 64
    assert not page_map.state.flags.writeable
    first = engine.page_tokens(page_map[0].index)
    assert first == tuple(b"p" * 16)
    whole = [page for page in page_map if page.state == "shared"]
    assert {page.refcount for page in whole} <= {2, 3}
    assert page_map[0].refcount == 3
    assert set(page_map[0].owners) == {"chat/1", "chat/2"}
    assert page_map[0].filled == 16
    states = [page.state for page in page_map]
    counted = engine.stats().pages
    assert {state: states.count(state) for state in counted} == counted
    assert engine.stats().sharing > 1
    for info in engine.sequences():
        assert info.pages_private + info.pages_shared == -(-info.computed_tokens // 16)
    filled = sum(page.filled for page in page_map if page.refcount)
    assert engine.stats().waste == pytest.approx(1 - filled / (16 * (counted["private"] + counted["shared"])))
    engine.resume()


def test_the_version_stands_still_when_nothing_happens(engine: FakeEngine) -> None:
    empty = engine.page_map()
    assert engine.page_map(since=empty.version) is empty
    engine.submit(GenerationRequest(prompt="p" * 40, sampling=SamplingParams(max_tokens=2))).result(5)
    after = engine.page_map(since=empty.version)
    assert after.version > empty.version
    assert [page.state for page in after].count("cached") == 3
    assert engine.drop_cache() == 3
    assert engine.page_map().version > after.version
    assert after[-1].index == 63
    with pytest.raises(IndexError):
        after[64]


def test_the_prefix_tree_shows_what_is_known_and_forget_takes_it_away(engine: FakeEngine) -> None:
    for owner, tail in (("a", "x" * 20), ("b", "y" * 20)):
        request = GenerationRequest(prompt="s" * 32 + tail, owner=owner, sampling=SamplingParams(max_tokens=1))
        engine.submit(request).result(5)
    nodes = engine.prefix_tree()
    assert [(node.tokens, node.owners) for node in nodes if node.parent is None] == [(16, ("a", "b"))]
    assert sum(node.tokens for node in nodes) == 32 + 2 * 20
    ids = {node.id for node in nodes}
    assert all(node.parent in ids for node in nodes if node.parent is not None)
    assert engine.forget("a") == 2
    assert {owner for node in engine.prefix_tree() for owner in node.owners} == {"b"}
    assert engine.forget("b") == 4
    assert engine.prefix_tree() == ()
    assert engine.stats().pages["free"] == 64


def test_pages_that_do_not_exist_are_refused(engine: FakeEngine) -> None:
    with pytest.raises(InvalidRequest, match="page 64"):
        engine.page_tokens(64)
    with pytest.raises(InvalidRequest, match="host"):
        engine.page_tokens(0, pool="host")
    assert engine.page_tokens(5) == ()


def test_swapped_pages_stand_in_the_host_pool() -> None:
    engine = FakeEngine(script="answer " * 400, tokens_per_second=20_000, pages=16, host_pages=8)
    handle = engine.submit(GenerationRequest(prompt="p" * 40, owner="chat/1"))
    next(event for event in handle.events(5) if isinstance(event, Delta))
    handle.pause()
    handle.swap_out()
    next(event for event in handle.events(5) if isinstance(event, Preempted))
    # Moved before a step; a new answer makes one.
    engine.submit(GenerationRequest(prompt="q", owner="chat/2", sampling=SamplingParams(max_tokens=2))).result(5)
    page_map = engine.page_map()
    assert len(page_map) == 16 + 8
    swapped = [page for page in page_map if page.state == "swapped"]
    assert {page.pool for page in swapped} == {"host"}
    assert swapped[0].owners == ("chat/1",)
    assert tuple(b"p" * 16) in {engine.page_tokens(page.index, "host") for page in swapped}
    assert len(swapped) == engine.stats().pages["swapped"]
    nodes = engine.prefix_tree()
    assert len({node.id for node in nodes}) == len(nodes)
    assert {node.pool for node in nodes if "chat/1" in node.owners} == {"host"}
    engine.close()
