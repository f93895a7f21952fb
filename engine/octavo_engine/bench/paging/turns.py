"""A new turn, and a new branch, of a long history: only what is new is computed."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

from octavo_engine.api import Engine
from octavo_engine.bench.goal import Goal
from octavo_engine.bench.opening import OpenEngine
from octavo_engine.bench.report import PartResult, table
from octavo_engine.bench.scale import Scale
from octavo_engine.bench.trace import some_text
from octavo_engine.events import Completion, Delta, Event, Progress
from octavo_engine.request import GenerationRequest, SamplingParams

# Tokens of a short and of a longer question.
_NEW = (16, 48)
_ANSWER = 24
_LARGEST_CHUNK = 512
# Decode steps that a turn may take beside the reading of its new tokens.
_SPARE_STEPS = 1.5


@dataclass(frozen=True, slots=True)
class _Asked:
    """An answer, the steps from its submission to its first token, and the time of the last of them (seconds)."""

    completion: Completion
    steps: int
    last_step: float

    @property
    def ttft(self) -> float:
        """Seconds to the first token."""
        assert self.completion.timings.ttft is not None
        return self.completion.timings.ttft


def _ask(engine: Engine, tokens: Sequence[int]) -> _Asked:
    before = engine.stats().steps
    # When chunks of the prompt had been read, the last one included, and when tokens came.
    chunks: list[float] = []
    deltas: list[float] = []

    def note(event: Event) -> None:
        if isinstance(event, Progress):
            chunks.append(time.monotonic())
        elif isinstance(event, Delta):
            deltas.append(time.monotonic())

    sampling = SamplingParams(temperature=0.0, max_tokens=_ANSWER, ignore_eos=True)
    handle = engine.submit(GenerationRequest(token_ids=tuple(tokens), sampling=sampling, owner="bench"), note)
    completion = handle.result()
    # Every later token takes one step, and nothing else runs.
    steps = engine.stats().steps - before - (_ANSWER - 1)
    return _Asked(completion, steps, deltas[0] - chunks[-2] if len(chunks) > 1 else 0.0)


def measure(open_engine: OpenEngine, scale: Scale) -> PartResult:
    """For each history and question: the next turn of a chat and another branch of it, several times; medians."""
    figures: dict[str, dict[str, float]] = {}
    goals: list[Goal] = []
    with open_engine() as engine:
        for length in scale.turn_histories:
            for new in _NEW:
                measured = _measure(engine, length, new, scale.repetitions)
                figures |= measured
                for name, each in measured.items():
                    goals += _goals(name, each, engine.config.page_size)
    rows = [
        (
            name,
            int(each["steps"]),
            *(1000 * each[key] for key in ("ttft", "allowed_alone", "allowed_in_place", "cold_history_ttft")),
        )
        for name, each in figures.items()
    ]
    columns = ("", "steps", "ms", "allowed, alone", "allowed, in place", "all anew")
    return PartResult(
        name="turns",
        about=f"Medians of {scale.repetitions}. Allowed: reading the new tokens and {_SPARE_STEPS} decode steps. "
        "Alone: read as a prompt of their own, with no history to attend to; in place: as the last chunk of the "
        "whole prompt, read cold.",
        figures=figures,
        tables=(table("First token, milliseconds", columns, rows),),
        goals=tuple(goals),
    )


def _measure(engine: Engine, length: int, new: int, repetitions: int) -> dict[str, dict[str, float]]:
    history = some_text(engine.tokenizer, length, seed=length)
    budget = engine.config.max_batch_tokens
    # Equal chunks, so that one ends where the new tokens begin.
    chunk = length // -(-length // _LARGEST_CHUNK)
    asked: dict[str, list[_Asked]] = {"alone": [], "in place": [], "opened": [], "turn": [], "branch": []}
    for number in range(repetitions):
        engine.drop_cache()
        asked["alone"].append(_ask(engine, some_text(engine.tokenizer, new, seed=number)))
        engine.configure(max_batch_tokens=chunk)
        whole = [*history, *some_text(engine.tokenizer, new, seed=300 + number)]
        asked["in place"].append(_ask(engine, whole))
        engine.configure(max_batch_tokens=budget)
        engine.drop_cache()
        asked["opened"].append(_ask(engine, history))
        known = [*history, *asked["opened"][-1].completion.token_ids]
        asked["turn"].append(_ask(engine, [*known, *some_text(engine.tokenizer, new, seed=100 + number)]))
        # Another question in place of the history's last words.
        other = some_text(engine.tokenizer, new, seed=200 + number)
        asked["branch"].append(_ask(engine, [*history[:-8], *other]))
    spare = _SPARE_STEPS * statistics.median(turn.completion.timings.tpot or 0.0 for turn in asked["turn"])
    figures = {}
    for kind in ("turn", "branch"):
        usages = [each.completion.usage for each in asked[kind]]
        figures[f"{kind} of {new} tokens after {length:,}"] = {
            "history": length,
            "new_tokens": new,
            "steps": max(each.steps for each in asked[kind]),
            "ttft": statistics.median(each.ttft for each in asked[kind]),
            "allowed_alone": statistics.median(each.ttft for each in asked["alone"]) + spare,
            "allowed_in_place": statistics.median(each.last_step for each in asked["in place"]) + spare,
            "cold_history_ttft": statistics.median(each.ttft for each in asked["opened"]),
            # What is computed beyond the new tokens: the last token of the answer before has no keys yet.
            "recomputed_beyond_new": max(each.prompt_tokens - each.cached_tokens - new for each in usages),
        }
    return figures


def _goals(name: str, figures: dict[str, float], page_size: int) -> list[Goal]:
    return [
        Goal(f"steps to the first token, {name}", figures["steps"], "<=", 2, "steps"),
        Goal(f"first token against them alone, {name}", figures["ttft"], "<=", figures["allowed_alone"], "s"),
        Goal(f"first token against them in place, {name}", figures["ttft"], "<=", figures["allowed_in_place"], "s"),
        Goal(f"computed beside the new tokens, {name}", figures["recomputed_beyond_new"], "<=", page_size, "tokens"),
    ]
