"""The tree opens anything: any order of rows, orphans, cycles."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from octavo.chat.message import Message, Role, Status
from octavo.chat.tree import MessageTree


def message(identifier: str, parent: str | None, text: str = "") -> Message:
    return Message(
        id=identifier,
        chat_id="chat",
        parent_id=parent,
        role=Role.USER,
        status=Status.COMPLETE,
        text=text,
        created=datetime(2026, 1, 1, tzinfo=UTC),
    )


FORKED = [message("a", None), message("b", "a"), message("c", "b"), message("d", "b"), message("e", "d")]


def ids(messages: Sequence[Message]) -> list[str]:
    return [message.id for message in messages]


@given(st.permutations(FORKED))
def test_order_of_rows_does_not_matter(rows: list[Message]) -> None:
    tree = MessageTree(rows)
    assert ids(tree.path("e")) == ["a", "b", "d", "e"]
    assert ids(tree.path("c")) == ["a", "b", "c"]
    assert ids(tree.children("b")) == ["c", "d"]
    assert ids(tree.siblings("d")) == ["c", "d"]
    assert ids(tree.children(None)) == ["a"]
    assert tree.newest_leaf() == "e"


@given(st.dictionaries(st.sampled_from("abcdefgh"), st.none() | st.sampled_from("abcdefghxyz")))
def test_any_parents_end_in_a_path(parents: dict[str, str | None]) -> None:
    """Orphans and cycles included: a path holds each message once, each the parent of the next."""
    tree = MessageTree(message(identifier, parent) for identifier, parent in parents.items())
    for identifier in parents:
        path = tree.path(identifier)
        assert path[-1].id == identifier
        assert len(set(ids(path))) == len(path)
        assert all(after.parent_id == before.id for before, after in itertools.pairwise(path))
    assert (tree.newest_leaf() is None) == (not parents)


def test_orphan_begins_its_path() -> None:
    tree = MessageTree([message("b", "missing"), message("c", "b")])
    assert ids(tree.path("c")) == ["b", "c"]


def test_unknown_leaf_has_no_path() -> None:
    assert MessageTree(FORKED).path("z") == ()
    assert MessageTree().path(None) == ()


def test_message_is_replaced_in_its_place() -> None:
    tree = MessageTree(FORKED)
    tree.put(message("c", "b", "new text"))
    assert len(tree) == 5
    assert tree["c"].text == "new text"
    assert ids(tree.children("b")) == ["c", "d"]


def test_message_with_another_parent_moves() -> None:
    tree = MessageTree(FORKED)
    tree.put(message("c", "a"))
    assert ids(tree.children("b")) == ["d"]
    assert ids(tree.children("a")) == ["b", "c"]
