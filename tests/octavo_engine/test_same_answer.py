"""A sequence's answer does not depend on its company: the starter model with `batch_invariant=True`, bit for bit."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from octavo_engine import Delta, Engine, EngineConfig, Event, GenerationRequest, Handle, Progress, SamplingParams

PROMPTS = [
    "What is the capital of France?",
    "Write a short poem about the sea.",
    "Name three colours.",
    "Explain gravity to a child in simple words.",
    "What is 2 + 2?",
    "Who wrote Hamlet, and when?",
    "List the planets of the solar system. " * 12,
    "Translate 'good morning' into Spanish.",
]
TOKENS = 24


def ask(prompt: str, **sampling: object) -> GenerationRequest:
    parameters = {"temperature": 0.0, "max_tokens": TOKENS} | sampling
    return GenerationRequest(
        messages=[{"role": "user", "content": prompt}],
        sampling=SamplingParams(**parameters),  # type: ignore[arg-type]
    )


@pytest.fixture(scope="module")
def engine(starter_model: Path) -> Iterator[Engine]:
    engine = Engine.open(starter_model, EngineConfig(batch_invariant=True))
    yield engine
    engine.close()


def answers(engine: Engine, *requests: GenerationRequest) -> list[tuple[int, ...]]:
    engine.pause()
    handles = [engine.submit(request) for request in requests]
    engine.resume()
    return [handle.result(120).token_ids for handle in handles]


def test_eight_together_answer_like_one_by_one_in_the_steps_of_one(engine: Engine) -> None:
    alone = [answers(engine, ask(prompt))[0] for prompt in PROMPTS]
    before = engine.stats().steps
    together = answers(engine, *(ask(prompt) for prompt in PROMPTS))
    steps = engine.stats().steps - before
    assert together == alone
    assert len(set(together)) == len(PROMPTS)
    longest = max(len(tokens) for tokens in alone)
    # The prompts may take two chunks; nobody's decode waits for anybody's end.
    assert longest <= steps <= longest + 3


def test_sampled_answers_do_not_change_in_company(engine: Engine) -> None:
    alone = [answers(engine, ask(p, temperature=0.9, top_p=0.95, seed=i))[0] for i, p in enumerate(PROMPTS[:3])]
    together = answers(engine, *(ask(p, temperature=0.9, top_p=0.95, seed=i) for i, p in enumerate(PROMPTS[:3])))
    assert together == alone
    other = answers(engine, ask(PROMPTS[1], temperature=0.9, top_p=0.95, seed=99))[0]
    assert other != alone[1]


def test_prompts_read_in_chunks_answer_alike(engine: Engine) -> None:
    whole = answers(engine, ask(PROMPTS[6]))
    try:
        for chunk in (1, 7, 16, 33):
            engine.configure(max_batch_tokens=chunk)
            assert answers(engine, ask(PROMPTS[6])) == whole
    finally:
        engine.configure(max_batch_tokens=2048)


def test_a_chunk_may_end_at_each_boundary_of_the_first_two_pages(engine: Engine) -> None:
    request = ask(PROMPTS[3], max_tokens=3)
    engine.drop_cache()
    whole = answers(engine, request)[0]

    def read_the_rest(event: Event) -> None:
        if isinstance(event, Progress):
            read.append(event.computed)
            engine.configure(max_batch_tokens=2048)

    try:
        for boundary in range(1, 33):
            read: list[int] = []
            engine.drop_cache()
            engine.configure(max_batch_tokens=boundary)
            completion = engine.submit(request, read_the_rest).result(60)
            assert completion.usage.prompt_tokens > 32
            assert (read[0], read[-1]) == (boundary, completion.usage.prompt_tokens)
            assert completion.token_ids == whole, f"with a chunk that ended at {boundary}"
    finally:
        engine.configure(max_batch_tokens=2048)


@pytest.mark.parametrize("host_pages", [0, 64])
def test_preempted_answers_go_on_alike(engine: Engine, starter_model: Path, host_pages: int) -> None:
    prompts = PROMPTS[:4]
    alone = [answers(engine, ask(prompt, max_tokens=40, ignore_eos=True))[0] for prompt in prompts]
    small = Engine.open(starter_model, EngineConfig(batch_invariant=True, kv_pages=14, host_pages=host_pages))
    try:
        assert answers(small, *(ask(prompt, max_tokens=40, ignore_eos=True) for prompt in prompts)) == alone
        stats = small.stats()
        assert stats.preemptions > 0
        assert (stats.swaps > 0) == (host_pages > 0)
        assert stats.pages["private"] + stats.pages["shared"] == 0
        assert small.check_integrity().ok
    finally:
        small.close()


def test_cached_beginnings_answer_like_cold_ones(engine: Engine) -> None:
    engine.drop_cache()
    cold = engine.submit(ask(PROMPTS[6])).result(60)
    warm = engine.submit(ask(PROMPTS[6])).result(60)
    assert (cold.usage.cached_tokens, warm.usage.cached_tokens) == (0, cold.usage.prompt_tokens - 1)
    assert warm.token_ids == cold.token_ids


def test_forks_at_every_position_of_a_page_answer_like_their_parent(engine: Engine) -> None:
    parent = engine.submit(ask(PROMPTS[1], max_tokens=40, ignore_eos=True))
    whole = parent.result(60).token_ids
    forks = {at: parent.fork(at=at, sampling=SamplingParams(temperature=0, max_tokens=40 - at))[0] for at in range(18)}
    for at, fork in forks.items():
        completion = fork.result(60)
        assert completion.token_ids[: at + 4] == whole[: at + 4]
        assert completion.token_ids == whole[: len(completion.token_ids)]


def test_forks_of_a_running_answer_say_what_it_says(engine: Engine) -> None:
    forks: dict[int, Handle] = {}

    def fork(event: Event) -> None:
        if isinstance(event, Delta) and len(forks) < 17:
            assert parent.state == "running"
            at = len(forks) + 1
            forks[at] = parent.fork(at=at, sampling=SamplingParams(temperature=0, max_tokens=4, ignore_eos=True))[0]

    engine.pause()
    parent = engine.submit(ask(PROMPTS[1], max_tokens=24, ignore_eos=True), fork)
    engine.resume()
    whole = parent.result(60).token_ids
    assert list(forks) == list(range(1, 18))
    for at, child in forks.items():
        assert child.result(60).token_ids == whole[: at + 4], f"forked at {at}"


def test_several_answers_equal_single_ones_with_their_streams(engine: Engine) -> None:
    sampling = {"temperature": 0.9, "seed": 11, "max_tokens": 12}
    several = engine.submit(ask(PROMPTS[3], n=3, **sampling)).result(60)
    texts = [answer.token_ids for answer in (several, *several.siblings)]
    assert texts[0] == answers(engine, ask(PROMPTS[3], **sampling))[0]
    assert len(set(texts)) == 3
    assert [a.token_ids for a in engine.submit(ask(PROMPTS[3], n=3, **sampling)).result(60).siblings] == texts[1:]
