"""A sequence's answer does not depend on its company: the starter model with `batch_invariant=True`, bit for bit."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from octavo_engine import Engine, EngineConfig, GenerationRequest, SamplingParams

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


def test_preempted_and_computed_again_answers_alike(engine: Engine, starter_model: Path) -> None:
    prompts = PROMPTS[:4]
    alone = [answers(engine, ask(prompt, max_tokens=40, ignore_eos=True))[0] for prompt in prompts]
    small = Engine.open(starter_model, EngineConfig(batch_invariant=True, kv_pages=14))
    try:
        assert answers(small, *(ask(prompt, max_tokens=40, ignore_eos=True) for prompt in prompts)) == alone
        stats = small.stats()
        assert stats.preemptions > 0
        assert stats.pages["free"] == 14
        assert small.check_integrity().ok
    finally:
        small.close()
