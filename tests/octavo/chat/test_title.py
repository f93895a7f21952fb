"""The title that a chat takes from its first question."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.chat.chat import NEW_TITLE, title_from


@pytest.mark.parametrize(
    ("question", "title"),
    [
        ("Hello", "Hello"),
        ("\n\n  What is\ta page?  \nSecond line", "What is a page?"),
        ("x" * 48, "x" * 48),
        ("x" * 60, "x" * 47 + "…"),
        ("Explain in simple words how a printing press folds a sheet", "Explain in simple words how a printing press…"),
        ("12345678901234567890123456789012345678901234567 890", "12345678901234567890123456789012345678901234567…"),
        (" \n ", NEW_TITLE),
    ],
)
def test_examples(question: str, title: str) -> None:
    assert title_from(question) == title


@given(st.text())
def test_is_one_short_line_and_never_empty(question: str) -> None:
    title = title_from(question)
    assert 0 < len(title) <= 48
    assert len(title.splitlines()) == 1
