"""A sequence's answer does not depend on its company: small random models of several shapes, token for token.

Every run is compared with the plain one: alone, its prompt read at once, nothing cached, nothing preempted.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from octavo_engine import Delta
from octavo_engine.local_engine import LocalEngine
from octavo_engine.models.loader import load_decoder
from ragged import batch, stale_pages
from tiny_engine import ask, tiny_engine
from tiny_llama import VOCABULARY, tiny_llama, write

SHAPES: dict[str, dict[str, Any]] = {
    "gqa": {"heads": 4, "kv_heads": 2},
    "mha-untied": {"heads": 4, "kv_heads": 4, "tied": False},
    "mqa-three-layers": {"heads": 8, "kv_heads": 1, "layers": 3},
    "gqa-four-to-one": {"heads": 8, "kv_heads": 2, "layers": 1},
}
OUTPUT = 20
# Drawn tokens depend on every logit, where greedy ones of a random model soon repeat themselves.
DRAWN: dict[str, Any] = {"temperature": 1.0, "seed": 3}
# Positions whose two best logits are nearer than this may change with a float32 library product's rounding.
CLOSE_CALL = 1e-3


@pytest.fixture(scope="module", params=SHAPES)
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    shape = SHAPES[request.param]
    path = tmp_path_factory.mktemp("tiny") / f"{request.param}.gguf"
    write(tiny_llama(**shape), path, kind=gguf.GGMLQuantizationType.BF16)
    return path


@pytest.fixture(scope="module")
def engine(model: Path) -> Iterator[LocalEngine]:
    engine = tiny_engine(model)
    yield engine
    assert engine.check_integrity().ok
    engine.close()


def prompt(length: int, seed: int = 0) -> list[int]:
    return [int(token) for token in np.random.default_rng(1000 * seed + length).integers(0, VOCABULARY, length)]


def plain(engine: LocalEngine, tokens: list[int], output: int = OUTPUT, **sampling: object) -> tuple[int, ...]:
    """The answer of a cold engine to this prompt alone."""
    engine.drop_cache()
    answer = engine.submit(ask(tokens, output, **sampling)).result(30)
    assert answer.usage.cached_tokens == 0
    return answer.token_ids


def test_the_models_say_different_things(engine: LocalEngine) -> None:
    answers = {plain(engine, prompt(length), **DRAWN) for length in (5, 17, 40)}
    assert len(answers) == 3
    assert min(len(set(answer)) for answer in answers) > OUTPUT / 2


def test_batched_equals_alone(engine: LocalEngine) -> None:
    prompts = [prompt(length, seed=1) for length in (1, 2, 15, 16, 17, 33, 48, 90)]
    alone = [plain(engine, tokens, **DRAWN) for tokens in prompts]
    engine.drop_cache()
    engine.pause()
    handles = [engine.submit(ask(tokens, OUTPUT, **DRAWN)) for tokens in prompts]
    engine.resume()
    assert [handle.result(30).token_ids for handle in handles] == alone


def test_chunked_at_every_boundary_equals_whole(engine: LocalEngine) -> None:
    tokens = prompt(40, seed=2)
    whole = plain(engine, tokens, **DRAWN)
    try:
        for chunk in range(1, 40):
            engine.configure(max_batch_tokens=chunk)
            assert plain(engine, tokens, **DRAWN) == whole, f"in chunks of {chunk}"
    finally:
        engine.configure(max_batch_tokens=2048)


def test_cached_at_every_position_within_a_page_equals_cold(engine: LocalEngine) -> None:
    for common in range(15, 34):
        first, second = prompt(50, seed=3), prompt(50, seed=4)
        second[:common] = first[:common]
        # The next token must differ, or more would be known.
        second[common] = (first[common] + 1) % VOCABULARY
        cold = plain(engine, second, **DRAWN)
        plain(engine, first)
        warm = engine.submit(ask(second, OUTPUT, **DRAWN)).result(30)
        assert warm.usage.cached_tokens == common
        assert warm.token_ids == cold, f"with {common} tokens cached"


def test_forked_at_every_position_within_a_page_equals_resubmitted(engine: LocalEngine) -> None:
    tokens = prompt(20, seed=5)
    for is_running in (False, True):
        engine.drop_cache()
        parent = engine.submit(ask(tokens, 60))
        if is_running:
            events = (event for event in parent.events(30) if isinstance(event, Delta))
            for _ in range(18):
                next(events)
        else:
            parent.result(30)
        engine.pause()
        forks = {at: parent.fork(at=at, sampling=ask([], OUTPUT).sampling)[0] for at in range(18)}
        engine.resume()
        got = {at: fork.result(30).token_ids for at, fork in forks.items()}
        whole = parent.result(30).token_ids
        assert whole == plain(engine, tokens, 60)
        for at in forks:
            resubmitted = plain(engine, [*tokens, *whole[:at]])
            assert got[at] == (*whole[:at], *resubmitted), f"forked at {at}, running: {is_running}"


@pytest.mark.parametrize("way", ["swap", "recompute", "auto"])
def test_preempted_equals_not_preempted(engine: LocalEngine, model: Path, way: str) -> None:
    prompts = [prompt(length, seed=6) for length in (3, 16, 30, 47)]
    alone = [plain(engine, tokens, 50, **DRAWN) for tokens in prompts]
    small = tiny_engine(model, pages=12, host_pages=40, preemption=way)
    handles = [small.submit(ask(tokens, 50, **DRAWN)) for tokens in prompts]
    assert [handle.result(30).token_ids for handle in handles] == alone
    stats = small.stats()
    assert stats.preemptions > 0
    assert (stats.recomputes > 0) == (way == "recompute")
    assert small.check_integrity().ok
    small.close()


def test_several_answers_equal_single_draws_in_any_company(engine: LocalEngine) -> None:
    tokens = prompt(30, seed=7)
    sampling: dict[str, Any] = {"temperature": 1.0, "seed": 5}
    engine.drop_cache()
    several = engine.submit(ask(tokens, OUTPUT, n=3, **sampling)).result(30)
    answers = [answer.token_ids for answer in (several, *several.siblings)]
    assert len(set(answers)) == 3
    assert answers[0] == plain(engine, tokens, **sampling)
    engine.drop_cache()
    others = [engine.submit(ask(prompt(9, seed=seed), 40)) for seed in range(4)]
    again = engine.submit(ask(tokens, OUTPUT, n=3, **sampling)).result(30)
    assert [answer.token_ids for answer in (again, *again.siblings)] == answers
    for other in others:
        other.result(30)


def test_float32_agrees_up_to_the_first_close_call(model: Path) -> None:
    engine = tiny_engine(model, weights="float32")
    decoder = load_decoder(model, weights="float32")
    prompts = [prompt(length, seed=8) for length in (4, 16, 31, 60)]
    alone = [plain(engine, tokens) for tokens in prompts]
    engine.drop_cache()
    engine.pause()
    handles = [engine.submit(ask(tokens, OUTPUT)) for tokens in prompts]
    engine.resume()
    together = [handle.result(30).token_ids for handle in handles]
    engine.close()
    compared = 0
    for tokens, one, other in zip(prompts, alone, together, strict=True):
        known = [*tokens, *one]
        logits = decoder.forward(batch([(known, 0, list(range(10)))], every=True), stale_pages(decoder))
        best = logits[len(tokens) - 1 : -1].topk(2).values
        close = (best[:, 0] - best[:, 1] < CLOSE_CALL).nonzero().flatten().tolist()
        end = close[0] if close else OUTPUT
        compared += end
        assert one[:end] == other[:end]
    # Most was compared all the same.
    assert compared > 0.5 * len(prompts) * OUTPUT
