"""What every engine promises its callers, shown on the scripted one: true threads, events and page books."""

import gc
import threading
from collections.abc import Iterator

import pytest

from octavo_engine import (
    Delta,
    EngineClosed,
    EngineError,
    Event,
    Failed,
    FakeEngine,
    Finished,
    GenerationRequest,
    InvalidRequest,
    Preempted,
    Priority,
    PromptTooLarge,
    Resumed,
    SamplingParams,
    Started,
)
from scripted import FAST, ask, echo_engine, in_use


@pytest.fixture
def engine() -> Iterator[FakeEngine]:
    with echo_engine() as engine:
        yield engine


def test_many_submissions_share_steps(engine: FakeEngine) -> None:
    handles = [engine.submit(ask(f"number {index}")) for index in range(8)]
    texts = [handle.result(10).text for handle in handles]
    assert texts == [f"You said number {index}." for index in range(8)]
    longest = max(len(text) for text in texts)
    assert engine.stats().steps < 2 * longest


def test_scripts_are_forgotten_with_their_answers(engine: FakeEngine) -> None:
    for index in range(30):
        engine.submit(ask(f"number {index}")).result(10)
    gc.collect()
    # The engine's thread may still know the last step.
    assert len(engine._runner._begun) <= 1  # type: ignore[attr-defined]


def test_events_come_in_order_and_add_up(engine: FakeEngine) -> None:
    handle = engine.submit(ask("é語🎉"))
    events = list(handle.events(10))
    assert isinstance(events[0], Started)
    assert isinstance(events[-1], Finished)
    deltas = [event for event in events if isinstance(event, Delta)]
    completion = handle.result(0)
    assert "".join(delta.text for delta in deltas) == completion.text == "You said é語🎉."
    assert all("�" not in delta.text for delta in deltas)
    assert completion.reason == "stop"
    assert completion.usage.completion_tokens == len(completion.token_ids) == len(completion.text.encode())
    assert completion.timings.ttft is not None
    assert completion.timings.ttft <= completion.timings.total
    assert list(handle.events(0)) == []


def test_max_tokens_ends_with_length(engine: FakeEngine) -> None:
    assert engine.submit(ask("x", max_tokens=3)).result(10).text == "You"
    nothing = engine.submit(ask("x", max_tokens=0)).result(10)
    assert (nothing.text, nothing.reason) == ("", "length")


def test_stop_token_ids_end_the_answer(engine: FakeEngine) -> None:
    completion = engine.submit(ask("x", stop_token_ids=(ord("s"),))).result(10)
    assert (completion.text, completion.reason, completion.stop) == ("You ", "stop", ord("s"))


def test_cancel_ends_within_a_step_and_keeps_the_text() -> None:
    engine = FakeEngine(script="word " * 100_000, tokens_per_second=500)
    seen = threading.Event()
    handle = engine.submit(ask("x"), on_event=lambda event: seen.set() if isinstance(event, Delta) else None)
    other = engine.submit(ask("y", max_tokens=40))
    assert seen.wait(10)
    handle.cancel()
    completion = handle.result(1)
    assert completion.reason == "cancelled"
    assert completion.text
    assert other.result(10).reason == "length"
    assert in_use(engine) == 0
    engine.close()


def test_cancel_works_before_the_first_token() -> None:
    engine = FakeEngine(script="late", ttft=60)
    handle = engine.submit(ask("x"))
    handle.cancel()
    assert handle.result(2).reason == "cancelled"
    engine.close()


@pytest.mark.parametrize("host_pages", [0, 64])
def test_too_few_pages_preempt_and_everybody_ends(host_pages: int) -> None:
    engine = FakeEngine(
        script=lambda request: f"{request.prompt} " * 10, tokens_per_second=FAST, pages=16, host_pages=host_pages
    )
    handles = [engine.submit(ask(f"chat {index} of five")) for index in range(5)]
    assert [handle.result(20).text for handle in handles] == [f"chat {index} of five " * 10 for index in range(5)]
    events = [event for handle in handles for event in handle.events(0)]
    preempted = [event.how for event in events if isinstance(event, Preempted)]
    stats = engine.stats()
    assert stats.preemptions == len(preempted) == sum(isinstance(event, Resumed) for event in events) > 0
    assert set(preempted) == {"swap" if host_pages else "recompute"}
    # Nothing is computed twice while the host has room for what gave way.
    assert (stats.swaps > 0, stats.recomputes == 0) == ((True, True) if host_pages else (False, stats.evictions == 0))
    assert in_use(engine) == 0
    assert engine.check_integrity().ok
    engine.close()


@pytest.mark.parametrize(("preemption", "recomputes"), [("swap", False), ("recompute", True)])
def test_how_answers_give_way_can_be_chosen(preemption: str, recomputes: bool) -> None:
    engine = FakeEngine(script="x" * 400, tokens_per_second=FAST, pages=14, host_pages=64)
    engine.configure(preemption=preemption)
    handles = [engine.submit(ask(letter * 64, max_tokens=60)) for letter in "pqr"]
    events = [list(handle.events(20)) for handle in handles]
    assert [handle.result(0).text for handle in handles] == ["x" * 60] * 3
    stats = engine.stats()
    assert stats.preemptions > 0
    assert stats.swaps > 0 or recomputes
    assert (stats.recomputes > 0) == recomputes
    ways = {event.how for each in events for event in each if isinstance(event, Preempted)}
    assert ways == {preemption}
    assert engine.check_integrity().ok
    engine.close()


def test_a_prompt_that_never_fits_is_refused_with_the_numbers() -> None:
    engine = FakeEngine(pages=4)
    with pytest.raises(PromptTooLarge) as caught:
        engine.submit(ask("y" * 64)).result(5)
    assert (caught.value.needed, caught.value.available) == (5, 4)
    assert engine.submit(ask("y" * 63, max_tokens=1)).result(5).reason == "length"
    engine.close()


def test_memory_ends_the_last_runner() -> None:
    engine = FakeEngine(script="a" * 200, tokens_per_second=FAST, pages=4)
    completion = engine.submit(ask("y" * 10)).result(10)
    assert completion.reason == "memory"
    assert len(completion.text) == 4 * 16 - 10 + 1
    engine.close()


def test_a_failing_sequence_fails_alone() -> None:
    engine = FakeEngine(script=lambda request: str(request.prompt), tokens_per_second=FAST, fail_at=5)
    good, bad = engine.submit(ask("four")), engine.submit(ask("longer"))
    with pytest.raises(EngineError, match="token 5"):
        bad.result(5)
    assert good.result(5).text == "four"
    assert "".join(event.text for event in bad.events(0) if isinstance(event, Delta)) == "longe"
    assert engine.check_integrity().ok
    engine.close()


def test_an_exception_in_a_step_fails_its_sequences_and_the_engine_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    def script(request: GenerationRequest) -> str:
        if request.prompt == "bad":
            raise RuntimeError("broken script")
        return "fine"

    engine = FakeEngine(script=script, tokens_per_second=FAST)
    with pytest.raises(EngineError, match="broken script"):
        engine.submit(ask("bad")).result(5)
    assert engine.submit(ask("good")).result(5).text == "fine"
    assert "a step failed" in caplog.text
    engine.close()


def test_a_callers_callback_cannot_hurt_the_engine(engine: FakeEngine, caplog: pytest.LogCaptureFixture) -> None:
    def broken(event: Event) -> None:
        raise ValueError("my fault")

    assert engine.submit(ask("x"), on_event=broken).result(5).text == "You said x."
    assert "my fault" in caplog.text


def test_close_answers_every_waiter() -> None:
    engine = FakeEngine(script="word " * 100_000)
    handles = [engine.submit(ask("x")) for _ in range(70)]
    engine.close()
    for handle in handles:
        with pytest.raises(EngineClosed):
            handle.result(1)
    with pytest.raises(EngineClosed):
        engine.submit(ask("x"))
    engine.close()


def test_a_dead_engine_thread_tells_every_waiter(caplog: pytest.LogCaptureFixture) -> None:
    engine = FakeEngine(script="word " * 100_000, tokens_per_second=FAST)
    handles = [engine.submit(ask("x")) for _ in range(3)]
    next(event for event in handles[0].events(5) if isinstance(event, Delta))

    def broken() -> None:
        raise RuntimeError("a fault in the books")

    engine._scheduler.plan = broken  # type: ignore[assignment, method-assign]
    for handle in (*handles, engine.submit(ask("late"))):
        with pytest.raises(EngineClosed, match="open the model again"):
            handle.result(5)
    assert "the engine thread died" in caplog.text
    with pytest.raises(EngineClosed):
        engine.submit(ask("later")).result(5)
    engine.close()


def test_a_timeout_changes_nothing() -> None:
    engine = FakeEngine(script="late", ttft=0.3)
    handle = engine.submit(ask("x"))
    with pytest.raises(TimeoutError):
        handle.result(0.01)
    with pytest.raises(TimeoutError):
        list(handle.events(0.01))
    assert handle.result(5).text == "late"
    engine.close()


def test_pause_holds_and_resume_goes_on(engine: FakeEngine) -> None:
    engine.pause()
    handle = engine.submit(ask("x"))
    with pytest.raises(TimeoutError):
        handle.result(0.1)
    engine.resume()
    assert handle.result(5).text == "You said x."


def test_priority_decides_who_waits() -> None:
    engine = FakeEngine(script="a" * 50, tokens_per_second=FAST)
    engine.configure(max_running=1)
    engine.pause()
    order: list[str] = []
    handles = []
    for name, priority in (("background", Priority.BACKGROUND), ("chat", Priority.INTERACTIVE)):

        def note(event: Event, name: str = name) -> None:
            if isinstance(event, Started):
                order.append(name)

        handles.append(engine.submit(GenerationRequest(prompt=name, priority=priority), on_event=note))
    engine.resume()
    for handle in handles:
        handle.result(5)
    assert order == ["chat", "background"]
    engine.close()


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (GenerationRequest(), "exactly one"),
        (GenerationRequest(prompt="a", token_ids=[1]), "exactly one"),
        (GenerationRequest(prompt=""), "empty"),
        (GenerationRequest(messages=[{"role": "user", "content": "  "}]), "empty"),
        (GenerationRequest(messages=[{"role": "user"}]), "content"),
        (GenerationRequest(messages=[{"role": "user", "content": "x", "colour": "red"}]), "colour"),
        (ask("x", temperature=-1), "temperature is -1"),
        (ask("x", temperature=float("nan")), "temperature"),
        (ask("x", top_p=0), "top_p"),
        (ask("x", top_k=-3), "top_k"),
        (ask("x", max_tokens=-1), "max_tokens"),
        (ask("x", min_p=0.1), "min-p"),
        (ask("x", n=0), "n is 0"),
        (GenerationRequest(prompt="x", tools=[{}]), "tools"),
    ],
)
def test_what_needs_no_model_is_refused_at_once(engine: FakeEngine, request_: GenerationRequest, words: str) -> None:
    with pytest.raises(InvalidRequest, match=words):
        engine.submit(request_)


def test_token_ids_outside_the_vocabulary_fail(engine: FakeEngine) -> None:
    handle = engine.submit(GenerationRequest(token_ids=[1, 257]))
    assert isinstance(list(handle.events(5))[-1], Failed)
    with pytest.raises(InvalidRequest, match="257"):
        handle.result(1)


def test_configure_refuses_what_cannot_change(engine: FakeEngine) -> None:
    with pytest.raises(InvalidRequest, match="page_size"):
        engine.configure(page_size=32)
    with pytest.raises(InvalidRequest, match="host_pages"):
        engine.configure(preemption="swap")
    with pytest.raises(InvalidRequest, match="max_running"):
        engine.configure(max_running=0)
    with pytest.raises(InvalidRequest, match="policy"):
        engine.configure(policy="longest")
    engine.configure(policy="fcfs", max_running=3)
    assert (engine.config.policy, engine.config.max_running) == ("fcfs", 3)


def test_a_second_turn_computes_only_what_is_new(engine: FakeEngine) -> None:
    first = engine.submit(GenerationRequest(prompt="a" * 100, sampling=SamplingParams(max_tokens=20))).result(5)
    history = [*b"a" * 100, *first.token_ids]
    second = engine.submit(GenerationRequest(token_ids=[*history, *b"next"], sampling=SamplingParams(max_tokens=2)))
    # The last token of the answer was drawn and never computed.
    assert second.result(5).usage.cached_tokens == 100 + 20 - 1
    assert engine.stats().prefix_hit_rate > 0.5
    assert engine.drop_cache() > 0
    third = engine.submit(GenerationRequest(token_ids=history, sampling=SamplingParams(max_tokens=2)))
    assert third.result(5).usage.cached_tokens == 0


def test_without_a_prefix_cache_pages_are_free_at_once() -> None:
    engine = FakeEngine(script="text", tokens_per_second=FAST)
    engine.configure(prefix_cache=False)
    engine.submit(ask("p" * 50)).result(5)
    assert engine.submit(ask("p" * 50)).result(5).usage.cached_tokens == 0
    assert engine.stats().pages["free"] == 256
    engine.close()
