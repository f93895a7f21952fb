"""What can be done with a handle: pause, swap out, fork, several answers; on the scripted engine."""

from collections.abc import Iterator

import pytest

from octavo_engine import (
    Delta,
    EngineError,
    Event,
    Failed,
    FakeEngine,
    Finished,
    GenerationRequest,
    InvalidRequest,
    Preempted,
    SamplingParams,
    Started,
)
from scripted import FAST, ask, echo_engine, in_use


@pytest.fixture
def engine() -> Iterator[FakeEngine]:
    with echo_engine() as engine:
        yield engine


def test_a_paused_answer_stands_still_and_goes_on() -> None:
    engine = FakeEngine(script="word " * 40, tokens_per_second=2000)
    handle = engine.submit(ask("x"))
    events = handle.events(5)
    next(event for event in events if isinstance(event, Delta))
    handle.pause()
    other = engine.submit(ask("y", max_tokens=30))
    assert other.result(5).reason == "length"
    assert handle.state == "paused"
    assert in_use(engine) > 0
    with pytest.raises(TimeoutError):
        handle.result(0.05)
    handle.resume()
    assert handle.result(5).text == "word " * 40
    engine.close()


def test_an_answer_can_be_swapped_out_and_comes_back() -> None:
    engine = FakeEngine(script="word " * 40, tokens_per_second=2000, host_pages=64)
    handle = engine.submit(ask("p" * 40))
    events = handle.events(5)
    next(event for event in events if isinstance(event, Delta))
    handle.pause()
    handle.swap_out()
    swapped = next(event for event in events if isinstance(event, Preempted))
    assert swapped.how == "swap"
    assert engine.stats().pages["swapped"] >= 3
    assert (in_use(engine), engine.stats().swapped) == (0, 1)
    handle.resume()
    assert handle.result(5).text == "word " * 40
    assert engine.stats().recomputes == 0
    assert "swap" in engine.capabilities
    engine.close()


def test_a_paused_answer_gives_its_pages_and_its_place_to_those_who_wait() -> None:
    engine = FakeEngine(script="x" * 400, tokens_per_second=FAST, pages=16)
    engine.configure(max_running=1)
    paused = engine.submit(ask("p" * 150, max_tokens=60))
    next(event for event in paused.events(5) if isinstance(event, Delta))
    paused.pause()
    # Fits only where the paused one has gone.
    assert engine.submit(ask("q" * 150, max_tokens=60)).result(5).text == "x" * 60
    assert paused.state == "paused"
    paused.resume()
    assert paused.result(5).text == "x" * 60
    assert engine.stats().preemptions == 1
    engine.close()


def test_a_wish_that_comes_during_a_step_is_granted_right_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("octavo_engine.engine_loop._STALL_SECONDS", 3600)
    engine = FakeEngine(script="word " * 40, tokens_per_second=2000, host_pages=64)

    def note(event: Event) -> None:
        # Told in the step that moves the pages, after it has looked at the wishes; no row is in it.
        if isinstance(event, Preempted):
            handle.resume()

    handle = engine.submit(ask("p" * 40), note)
    next(event for event in handle.events(5) if isinstance(event, Delta))
    handle.pause()
    handle.swap_out()
    assert handle.result(5).text == "word " * 40
    assert engine.stats().swaps > 0
    engine.close()


def test_what_becomes_of_the_pages_is_told_as_it_is() -> None:
    engine = FakeEngine(script="word " * 40, tokens_per_second=2000, host_pages=64)
    engine.configure(preemption="recompute")
    handle = engine.submit(ask("p" * 40))
    events = handle.events(5)
    next(event for event in events if isinstance(event, Delta))
    handle.swap_out()
    assert next(event for event in events if isinstance(event, Preempted)).how == "recompute"
    assert handle.result(5).text == "word " * 40
    assert engine.stats().swaps == 0
    engine.close()


def test_swapping_out_needs_a_host_pool(engine: FakeEngine) -> None:
    handle = engine.submit(ask("x"))
    with pytest.raises(InvalidRequest, match="host_pages"):
        handle.swap_out()
    assert "swap" not in engine.capabilities


def test_several_answers_share_the_prompt_and_come_in_one_handle() -> None:
    engine = FakeEngine(script="an answer", tokens_per_second=FAST)
    handle = engine.submit(GenerationRequest(prompt="p" * 40, sampling=SamplingParams(n=3)))
    completion = handle.result(5)
    assert [answer.text for answer in (completion, *completion.siblings)] == ["an answer"] * 3
    assert [answer.index for answer in (completion, *completion.siblings)] == [0, 1, 2]
    events = list(handle.events(0))
    assert sum(isinstance(event, Finished) for event in events) == 3
    started = {event.index: event for event in events if isinstance(event, Started)}
    assert [started[index].cached_tokens for index in range(3)] == [0, 39, 39]
    assert engine.stats().copies_on_write == 2
    engine.close()


def test_cancelling_several_answers_ends_each() -> None:
    engine = FakeEngine(script="word " * 1000, ttft=30)
    handle = engine.submit(GenerationRequest(prompt="p", sampling=SamplingParams(n=3)))
    handle.cancel()
    completion = handle.result(2)
    assert [answer.reason for answer in (completion, *completion.siblings)] == ["cancelled"] * 3
    engine.close()


def test_a_failure_of_one_of_several_answers_fails_the_submission() -> None:
    engine = FakeEngine(script="a long answer", tokens_per_second=FAST, fail_at=4)
    handle = engine.submit(GenerationRequest(prompt="p", sampling=SamplingParams(n=3)))
    with pytest.raises(EngineError, match="token 4"):
        handle.result(5)
    assert sum(isinstance(event, Failed) for event in handle.events(0)) == 1
    assert engine.submit(ask("x", max_tokens=2)).result(5).reason == "length"
    assert engine.check_integrity().ok
    engine.close()


def test_forks_go_on_from_their_parents_tokens() -> None:
    engine = FakeEngine(script="héllo " * 30, tokens_per_second=2000)
    parent = engine.submit(ask("p" * 37))
    deltas = 0
    for event in parent.events(5):
        deltas += isinstance(event, Delta)
        if deltas == 12:
            break
    running = parent.fork(2)
    assert parent.result(5).text == "héllo " * 30
    # The second byte of é is not inherited: the fork completes the character.
    finished = parent.fork(1, at=2, sampling=SamplingParams(max_tokens=5))[0]
    for fork in running:
        assert fork.result(5).text == "héllo " * 30
    completion = finished.result(5)
    assert completion.text == "héllo"[:1] + "éllo "
    assert completion.usage.completion_tokens == 5
    assert completion.token_ids == tuple("héllo ".encode())
    started = next(event for event in finished.events(0) if isinstance(event, Started))
    assert (started.inherited_tokens, started.cached_tokens) == (2, 37)
    assert completion.seed != parent.result(0).seed
    engine.close()


def test_forks_that_cannot_be_are_refused(engine: FakeEngine) -> None:
    handle = engine.submit(ask("x"))
    handle.result(5)
    with pytest.raises(InvalidRequest, match="at is 999"):
        handle.fork(at=999)
    with pytest.raises(InvalidRequest, match="n is 0"):
        handle.fork(0)
    with pytest.raises(InvalidRequest, match="temperature"):
        handle.fork(sampling=SamplingParams(temperature=-1))
