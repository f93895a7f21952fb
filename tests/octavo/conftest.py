"""A store in a folder of its own, scripted engines, and the pump that a window would be."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from octavo.chat.chats import Chats
from octavo.engine_client import EngineClient, FakeEngine
from octavo.store import Store

DEADLINE = 20.0
Pump = Callable[..., None]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """An empty store, closed afterwards."""
    store = Store.open(tmp_path / "data" / "octavo.db")
    yield store
    store.close()


@pytest.fixture
def make_client() -> Iterator[Callable[..., EngineClient]]:
    """Makes clients of a FakeEngine with the given arguments; closed afterwards."""
    clients: list[EngineClient] = []

    def make(*script: object, **values: object) -> EngineClient:
        client = EngineClient(FakeEngine(*script, **values))  # type: ignore[arg-type]
        clients.append(client)
        return client

    yield make
    for client in clients:
        client.close()


@pytest.fixture
def pump() -> Pump:
    """Drains chats as a window does, until a condition holds or, without one, until nothing is active."""
    # Never set: waiting for it is the pause between two frames.
    frame = threading.Event()

    def run(chats: Chats, until: Callable[[], bool] | None = None) -> None:
        deadline = time.monotonic() + DEADLINE
        while True:
            active = chats.drain_all()
            if until() if until is not None else not active:
                return
            assert time.monotonic() < deadline, "nothing happened in time"
            frame.wait(0.005)

    return run
