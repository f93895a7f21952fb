"""Traces: requests with prompts, lengths and times of arrival, drawn from a seed."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from octavo_engine.api import Tokenizer
from octavo_engine.request import GenerationRequest, Priority, SamplingParams

_WORDS = (
    "the of and a to in is it that was for on are with as his they be at one have this from or had by hot word but",
    "what some we can out other were all there when up use your how said an each she which do their time if will way",
    "about many then them write would like so these her long make thing see him two has look more day could go come",
    "did number sound no most people my over know water than call first who may down side been now find any new work",
    "part take get place made live where after back little only round man year came show every good me give our under",
)
_VOCABULARY = tuple(word for line in _WORDS for word in line.split())


@dataclass(frozen=True, slots=True)
class Job:
    """One request of a trace.

    Attributes:
        arrival: seconds from the beginning of the trace.
        prompt: its tokens; no two jobs begin alike, so that the prefix cache finds nothing.
        output: tokens to generate, whatever they are.
    """

    arrival: float
    prompt: tuple[int, ...]
    output: int
    priority: Priority = Priority.NORMAL

    @property
    def length(self) -> int:
        """Tokens of prompt and output."""
        return len(self.prompt) + self.output

    def request(self, *, output: int | None = None, owner: str = "bench") -> GenerationRequest:
        """The request; `output` replaces the job's own length."""
        wanted = self.output if output is None else output
        sampling = SamplingParams(temperature=0.0, max_tokens=wanted, ignore_eos=True)
        return GenerationRequest(token_ids=self.prompt, sampling=sampling, priority=self.priority, owner=owner)


def some_text(tokenizer: Tokenizer, tokens: int, seed: int) -> tuple[int, ...]:
    """`tokens` tokens of words in no order."""
    draw = random.Random(seed)
    ids: list[int] = []
    while len(ids) < tokens:
        ids += tokenizer.encode(" ".join(draw.choices(_VOCABULARY, k=64)) + ". ", parse_special=False)
    return tuple(ids[:tokens])


def log_uniform(draw: random.Random, least: int, most: int) -> int:
    """A length between `least` and `most`, short ones as often as long ones by order of magnitude."""
    return round(math.exp(draw.uniform(math.log(least), math.log(most))))


def make_trace(
    tokenizer: Tokenizer, count: int, *, prompts: tuple[int, int], outputs: tuple[int, int], seed: int
) -> tuple[Job, ...]:
    """`count` jobs that arrive at once, with log-uniform lengths of prompt and output."""
    draw = random.Random(seed)
    return tuple(
        Job(0.0, some_text(tokenizer, log_uniform(draw, *prompts), seed * 1000 + number), log_uniform(draw, *outputs))
        for number in range(count)
    )


def at_rate(jobs: Sequence[Job], rate: float, seed: int) -> tuple[Job, ...]:
    """The same jobs with Poisson arrivals of `rate` a second."""
    draw, now = random.Random(seed), 0.0
    timed = []
    for job in jobs:
        timed.append(replace(job, arrival=now))
        now += draw.expovariate(rate)
    return tuple(timed)
