"""Answers without an engine: before each token the whole text is computed anew, in one piece and in fresh pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from octavo_engine import SamplingParams
from octavo_engine.models.decoder import Decoder
from octavo_engine.random_numbers import uniform
from octavo_engine.sampler import Draw, sample
from ragged import batch, stale_pages

# Positions whose two best logits are nearer than this may change with the rounding of a float32 library product.
CLOSE_CALL = 1e-3


class LogitBook:
    """The logits after each text, as they were first computed, and how far later ones after the same text were off."""

    def __init__(self) -> None:
        self._first: dict[tuple[int, ...], torch.Tensor] = {}
        self.compared = 0
        self.furthest = 0.0

    def note(self, tokens: Sequence[int], logits: torch.Tensor) -> None:
        """Enter the logits [vocabulary] after `tokens`, or compare them with those that are there."""
        assert logits.isfinite().all(), "a page was read that nobody has written"
        first = self._first.setdefault(tuple(tokens), logits)
        if first is not logits:
            self.compared += 1
            self.furthest = max(self.furthest, float((first - logits).abs().amax()))


@dataclass(frozen=True)
class PlainAnswer:
    """Tokens, and how far the best logit was above the second at each."""

    token_ids: tuple[int, ...]
    gaps: tuple[float, ...]

    @property
    def certain(self) -> tuple[int, ...]:
        """The greedy tokens before the first close call."""
        close = (index for index, gap in enumerate(self.gaps) if gap < CLOSE_CALL)
        return self.token_ids[: next(close, len(self.gaps))]


def plain_answer(
    decoder: Decoder, prompt: Sequence[int], sampling: SamplingParams, *, stream: int = 0, book: LogitBook
) -> PlainAnswer:
    """What `sampling`, which has a seed or is greedy, makes of `prompt`; its logits go into `book`."""
    assert sampling.max_tokens is not None
    tokens = list(prompt)
    gaps = []
    for position in range(sampling.max_tokens):
        logits = decoder.forward(batch([(tokens, 0, list(range(10)))]), stale_pages(decoder, 10))
        book.note(tokens, logits[0])
        best, second = logits[0].topk(2).values.tolist()
        gaps.append(best - second)
        number = uniform(sampling.seed or 0, stream, position)
        tokens += sample(logits, [Draw(sampling.temperature, sampling.top_k, sampling.top_p, number)])
    return PlainAnswer(tuple(tokens[len(prompt) :]), tuple(gaps))
