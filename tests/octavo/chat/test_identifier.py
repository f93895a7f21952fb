"""Identifiers are unique and sort in the order in which they were made."""

from __future__ import annotations

import threading
import time
import uuid

import pytest

from octavo.chat.identifier import new_id


def test_ten_thousand_sort_in_the_order_they_were_made() -> None:
    made = [new_id() for _ in range(10_000)]
    assert made == sorted(made)
    assert len(set(made)) == len(made)


def test_is_a_uuid_of_version_7_and_of_this_time() -> None:
    value = uuid.UUID(new_id())
    assert value.version == 7
    assert value.variant == uuid.RFC_4122
    assert abs((value.int >> 80) / 1000 - time.time()) < 60


def test_order_survives_a_clock_that_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    before = new_id()
    monkeypatch.setattr(time, "time_ns", lambda: 1_000_000)
    assert new_id() > before


def test_threads_get_different_ones() -> None:
    made: list[str] = []
    threads = [threading.Thread(target=lambda: made.extend(new_id() for _ in range(2_000))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == 8_000
