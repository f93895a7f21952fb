"""PySide6 6.12.0 on Python 3.11 loses a reference to None with each void call and aborts after a few thousand."""

from __future__ import annotations

import sys

from PySide6.QtCore import QObject

CALLS = 50_000


def test_void_calls_keep_the_references_of_none() -> None:
    thing = QObject()
    before = sys.getrefcount(None)
    for _ in range(CALLS):
        thing.setObjectName("octavo")
    # Other threads and the interpreter hold a few more or fewer meanwhile; a leak would be of the size of CALLS.
    assert abs(sys.getrefcount(None) - before) < CALLS // 100
