"""The watchdog speaks after a second of standstill, once, and is quiet again when something runs."""

import logging
import time

import pytest

from octavo_engine import FakeEngine, GenerationRequest, SamplingParams
from octavo_engine.sequence import Sequence
from octavo_engine.watchdog import Watchdog


def test_a_standstill_is_reported_once_with_its_reason(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    watchdog = Watchdog()
    watchdog.look(10.0, running=False, waiting=2, reason="free pages")
    watchdog.look(11.0, running=False, waiting=2, reason="free pages")
    assert watchdog.report is None
    for now in (11.1, 11.4):
        watchdog.look(now, running=False, waiting=2, reason="free pages")
        assert watchdog.report == "Nothing runs while 2 answers wait: free pages."
    assert len(caplog.records) == 1
    watchdog.look(11.5, running=True, waiting=2, reason=None)
    assert watchdog.report is None


def test_waiting_while_others_run_and_resting_are_no_standstill() -> None:
    watchdog = Watchdog()
    for now in range(10):
        watchdog.look(now, running=True, waiting=3, reason="other answers to end")
        watchdog.look(now + 0.5, running=False, waiting=0, reason=None)
    assert watchdog.report is None


class DeadDisk:
    """Promises pages and never brings them."""

    def begin(self, sequence: Sequence, known: int) -> bool:
        sequence.fetching = True
        return True


def test_the_engine_reports_who_waits_for_what() -> None:
    engine = FakeEngine()
    engine._scheduler.disk = DeadDisk()
    handle = engine.submit(GenerationRequest(prompt="x" * 40))
    until = time.monotonic() + 10
    while not engine.stats().stall and time.monotonic() < until:
        time.sleep(0.05)
    assert engine.stats().stall == "Nothing runs while 1 answer waits: its pages from disk."
    handle.cancel()
    assert handle.result(5).reason == "cancelled"
    engine._scheduler.disk = None
    engine.submit(GenerationRequest(prompt="y", sampling=SamplingParams(max_tokens=2))).result(5)
    assert engine.stats().stall == ""
    engine.close()
