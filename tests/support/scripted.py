"""The scripted engine as many tests want it: fast, and closed with all of its threads."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from octavo_engine import FakeEngine, GenerationRequest, SamplingParams

FAST = 20_000


@contextmanager
def echo_engine() -> Iterator[FakeEngine]:
    """An engine that says what it was asked, until the end of the `with`."""
    engine = FakeEngine(script=lambda request: f"You said {request.prompt}.", tokens_per_second=FAST)
    yield engine
    engine.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("octavo-")]


def ask(prompt: str, **sampling: object) -> GenerationRequest:
    """A request with these sampling parameters."""
    return GenerationRequest(prompt=prompt, owner="test", sampling=SamplingParams(**sampling))  # type: ignore[arg-type]


def in_use(engine: FakeEngine) -> int:
    """Pages that page tables hold."""
    pages = engine.stats().pages
    return pages["private"] + pages["shared"]
