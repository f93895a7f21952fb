"""A sequence's answer does not depend on its company: small random models of several shapes and weight layouts.

The truth is an answer for which the whole text is computed anew before each token, without an engine. Where the
products of a layout are row-invariant, tokens and all logits must be the same bits. Float32 products are not: there
greedy tokens are compared up to the first close call, and logits within a tolerance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

import gguf
import numpy as np
import pytest

from octavo_engine import Delta, Event, Handle, Preempted, SamplingParams
from octavo_engine.local_engine import LocalEngine
from octavo_engine.models.decoder import Decoder
from plain_answer import LogitBook, PlainAnswer, plain_answer
from tiny_decoder import decoder_of
from tiny_engine import ask, tiny_engine
from tiny_families import VOCABULARY, tiny_model, write_gguf

Kind = gguf.GGMLQuantizationType
Layout = Literal["auto", "float32", "int8", "int4"]
SHAPES: dict[str, dict[str, Any]] = {
    "gqa": {"num_hidden_layers": 2},
    "mha-untied": {"num_key_value_heads": 4, "tie_word_embeddings": False, "hidden_size": 96, "num_hidden_layers": 2},
    "mqa-three-layers": {"num_attention_heads": 8, "num_key_value_heads": 1, "num_hidden_layers": 3},
    "gqa-four-to-one": {
        "num_attention_heads": 8,
        "num_hidden_layers": 1,
        "hidden_size": 256,
        "tie_word_embeddings": False,
    },
    "wide-heads": {"num_attention_heads": 2, "num_key_value_heads": 1, "hidden_size": 256, "num_hidden_layers": 2},
}
# What "auto" chooses under batch_invariant=True is bfloat16; 4 bits need a file that has them.
# Shapes are of llamas; these are other families, whole.
FAMILIES = ("mistral", "gemma2", "gemma3", "qwen3", "olmo2", "qwen3-moe")
LABS: list[tuple[str, Layout]] = [
    *((shape, "auto") for shape in SHAPES),
    *((family, "auto") for family in FAMILIES),
    ("gqa", "int4"),
    ("gqa", "int8"),
    ("wide-heads", "int4"),
    ("mha-untied", "float32"),
    ("gqa-four-to-one", "float32"),
]
# These stand for the others in the ordinary run.
SHORT = (
    ("gqa", "auto"),
    ("mha-untied", "auto"),
    ("gemma2", "auto"),
    ("qwen3-moe", "auto"),
    ("gqa", "int4"),
    ("gqa", "int8"),
)
OUTPUT = 16
GREEDY = SamplingParams(temperature=0, max_tokens=OUTPUT, ignore_eos=True)
# Drawn tokens depend on every logit, where greedy ones of a random model soon repeat themselves.
DRAWN = replace(GREEDY, temperature=1.0, seed=3)
FLOAT32_TOLERANCE = 1e-4
PAGE = range(1, 18)


@dataclass
class Lab:
    """A model, an engine that runs it, and the answers that are right."""

    path: Path
    decoder: Decoder
    is_exact: bool
    book: LogitBook = field(default_factory=LogitBook)

    def __post_init__(self) -> None:
        self.engine = self.open()
        self.sampling = DRAWN if self.is_exact else GREEDY
        self._plain = cache(self._compute)

    def open(self, **settings: Any) -> LocalEngine:
        return tiny_engine(self.path, self.decoder, self.book, **settings)

    def _compute(self, tokens: tuple[int, ...], output: int, temperature: float, seed: int, stream: int) -> PlainAnswer:
        sampling = replace(GREEDY, max_tokens=output, temperature=temperature, seed=seed)
        return plain_answer(self.decoder, tokens, sampling, stream=stream, book=self.book)

    def plain(self, tokens: Sequence[int], sampling: SamplingParams, *, stream: int = 0) -> PlainAnswer:
        """The right answer; no engine may be computing."""
        assert sampling.max_tokens is not None
        return self._plain(tuple(tokens), sampling.max_tokens, sampling.temperature, sampling.seed or 0, stream)

    def check(self, got: tuple[int, ...], right: PlainAnswer, case: str = "") -> None:
        if self.is_exact:
            assert got == right.token_ids, case
        else:
            assert len(got) == len(right.token_ids), case
            assert got[: len(right.certain)] == right.certain, case

    def together(self, *prompts: list[int], engine: LocalEngine | None = None, output: int = OUTPUT) -> None:
        """Ask all at once and compare."""
        engine = engine or self.engine
        sampling = replace(self.sampling, max_tokens=output)
        engine.drop_cache()
        engine.pause()
        handles = [engine.submit(ask(tokens, sampling)) for tokens in prompts]
        engine.resume()
        answers = [handle.result(60).token_ids for handle in handles]
        for tokens, answer in zip(prompts, answers, strict=True):
            self.check(answer, self.plain(tokens, sampling), f"a prompt of {len(tokens)} tokens")


@pytest.fixture(
    scope="module",
    params=[pytest.param(lab, marks=[] if lab in SHORT else pytest.mark.long, id="-".join(lab)) for lab in LABS],
)
def opened(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    shape, layout = request.param
    path = tmp_path_factory.mktemp("tiny") / f"{shape}.gguf"
    family = shape if shape in FAMILIES else "llama"
    model = tiny_model(family, **SHAPES.get(shape, {"num_hidden_layers": 2}))
    write_gguf(model, family, path, kind=Kind.Q4_0 if layout == "int4" else Kind.BF16)
    lab = Lab(path, decoder_of(path, weights=layout, batch_invariant=True), is_exact=layout != "float32")
    yield lab
    lab.engine.close()


@pytest.fixture
def lab(opened: Lab) -> Iterator[Lab]:
    """The lab, with empty pages before each test, and a look at logits and books after it."""
    opened.engine.drop_cache()
    compared = opened.book.compared
    yield opened
    assert opened.engine.check_integrity().ok
    assert opened.book.compared >= compared + OUTPUT
    assert opened.book.furthest <= (0 if opened.is_exact else FLOAT32_TOLERANCE)


def prompt(length: int, seed: int = 0) -> list[int]:
    return [int(token) for token in np.random.default_rng(1000 * seed + length).integers(0, VOCABULARY, length)]


def test_the_layouts_are_those_that_are_meant(opened: Lab, request: pytest.FixtureRequest) -> None:
    layout = request.node.callspec.params["opened"][1]
    matrices, head = opened.decoder.describe_layouts()
    assert {"auto": "bfloat16"}.get(layout, layout) in matrices
    assert {"auto": "bfloat16", "float32": "float32"}.get(layout, "int8") in head


def test_answers_are_various_and_mostly_certain(opened: Lab) -> None:
    answers = [opened.plain(prompt(length), opened.sampling) for length in (5, 17, 40)]
    assert len({answer.token_ids for answer in answers}) == 3
    if opened.is_exact:
        assert min(len(set(answer.token_ids)) for answer in answers) > OUTPUT / 2
    else:
        assert sum(len(answer.certain) for answer in answers) > 3 * OUTPUT / 2


def test_batched_equals_alone(lab: Lab) -> None:
    lab.together(*(prompt(length, seed=1) for length in (1, 2, 15, 16, 17, 33, 48, 90)))


def test_chunked_at_every_boundary_equals_whole(lab: Lab) -> None:
    tokens = prompt(40, seed=2)
    try:
        for chunk in range(1, 41):
            lab.engine.configure(max_batch_tokens=chunk)
            lab.together(tokens)
    finally:
        lab.engine.configure(max_batch_tokens=2048)


def test_cached_at_every_position_within_a_page_equals_cold(lab: Lab) -> None:
    for common in range(16, 34):
        first, second = prompt(50, seed=3), prompt(50, seed=4)
        second[:common] = first[:common]
        # The next token must differ, or more would be known.
        second[common] = (first[common] + 1) % VOCABULARY
        lab.together(first)
        warm = lab.engine.submit(ask(second, lab.sampling)).result(60)
        assert warm.usage.cached_tokens == common
        lab.check(warm.token_ids, lab.plain(second, lab.sampling), f"with {common} tokens cached")


def forks_of_a_running_answer(lab: Lab, tokens: list[int], *samplings: SamplingParams) -> tuple[Handle, dict[int, Any]]:
    """The answer, and its forks made at each position within a page in the very step that has drawn it."""
    forks: dict[int, list[Handle]] = {}

    def note(event: Event) -> None:
        if isinstance(event, Delta) and len(forks) < len(PAGE):
            assert parent.state == "running"
            at = len(forks) + 1
            forks[at] = [parent.fork(at=at, sampling=sampling)[0] for sampling in samplings]

    lab.engine.pause()
    parent = lab.engine.submit(ask(tokens, replace(lab.sampling, max_tokens=len(PAGE) + OUTPUT)), note)
    lab.engine.resume()
    parent.result(60)
    return parent, forks


@pytest.mark.parametrize("is_running", [False, True], ids=["ended", "running"])
def test_forked_at_every_position_within_a_page_equals_resubmitted(lab: Lab, is_running: bool) -> None:
    tokens = prompt(20, seed=5)
    copies = lab.engine.stats().copies_on_write
    if is_running:
        parent, forks = forks_of_a_running_answer(lab, tokens, GREEDY, lab.sampling)
    else:
        parent = lab.engine.submit(ask(tokens, replace(lab.sampling, max_tokens=len(PAGE) + OUTPUT)))
        parent.result(60)
        forks = {at: [parent.fork(at=at, sampling=each)[0] for each in (GREEDY, lab.sampling)] for at in PAGE}
    assert list(forks) == list(PAGE)
    got = {at: [fork.result(60).token_ids for fork in both] for at, both in forks.items()}
    assert lab.engine.stats().copies_on_write > copies
    whole = parent.result(0).token_ids
    lab.check(whole, lab.plain(tokens, replace(lab.sampling, max_tokens=len(whole))))
    for at, (greedy, like_parent) in got.items():
        assert greedy[:at] == like_parent[:at] == whole[:at]
        lab.check(greedy[at:], lab.plain([*tokens, *whole[:at]], GREEDY), f"forked at {at}")
        if lab.is_exact:
            # Random numbers are counted by output position, so that a fork with the seed says what its parent says.
            assert like_parent == whole[: at + OUTPUT]


def preempted_after(lab: Lab, tokens: list[int], sampling: SamplingParams, at: int) -> Handle:
    """An answer that stands still and is on the host, with `at` tokens."""
    drawn = 0

    def note(event: Event) -> None:
        nonlocal drawn
        drawn += isinstance(event, Delta)
        if drawn == at and isinstance(event, Delta):
            handle.pause()
            handle.swap_out()

    lab.engine.pause()
    handle = lab.engine.submit(ask(tokens, sampling), note)
    lab.engine.resume()
    assert next(event for event in handle.events(60) if isinstance(event, Preempted)).how == "swap"
    assert drawn == at
    return handle


@pytest.mark.parametrize("way", ["swap", "recompute"])
def test_preempted_at_every_position_within_a_page_equals_not_preempted(lab: Lab, way: str) -> None:
    tokens = prompt(20, seed=6)
    sampling = replace(lab.sampling, max_tokens=len(PAGE) + 4)
    before = lab.engine.stats()
    for at in PAGE:
        lab.engine.drop_cache()
        handle = preempted_after(lab, tokens, sampling, at)
        if way == "recompute":
            # What was swapped out is lost before it is wanted.
            lab.engine.drop_cache()
        handle.resume()
        lab.check(handle.result(60).token_ids, lab.plain(tokens, sampling), f"preempted after {at} tokens")
    stats = lab.engine.stats()
    assert stats.recomputes - before.recomputes == (len(PAGE) if way == "recompute" else 0)
    assert stats.swaps - before.swaps >= len(PAGE)


@pytest.mark.parametrize("way", ["swap", "recompute", "auto"])
def test_preempted_for_want_of_pages_equals_not_preempted(lab: Lab, way: str) -> None:
    small = lab.open(pages=12, host_pages=40, preemption=way)
    lab.together(*(prompt(length, seed=6) for length in (3, 16, 30, 47)), engine=small, output=50)
    stats = small.stats()
    assert stats.preemptions > 0
    assert (stats.recomputes > 0) == (way == "recompute")
    assert small.check_integrity().ok
    small.close()


def test_three_answers_are_three_single_streams_in_any_company(lab: Lab) -> None:
    tokens = prompt(30, seed=7)
    several = replace(lab.sampling, n=3)
    right = [lab.plain(tokens, lab.sampling, stream=stream) for stream in range(3)]
    for company in range(0, 5, 4):
        lab.engine.drop_cache()
        lab.engine.pause()
        others = [lab.engine.submit(ask(prompt(9, seed=seed), GREEDY)) for seed in range(company)]
        handle = lab.engine.submit(ask(tokens, several))
        lab.engine.resume()
        completion = handle.result(60)
        for other in others:
            other.result(60)
        for answer, expected in zip((completion, *completion.siblings), right, strict=True):
            lab.check(answer.token_ids, expected, f"answer {answer.index}")
    if lab.is_exact:
        assert len({answer.token_ids for answer in right}) == 3
