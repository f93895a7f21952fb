"""Draws the next tokens of a whole batch from its logits, each row by its own parameters and random number.

The steps, in this order: top-k, top-p, temperature. A row's result depends on nothing but its own logits, parameters
and number, whatever the rows beside it are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

# Candidates looked at before a whole row is sorted.
_HEAD = 512


@dataclass(frozen=True, slots=True)
class Draw:
    """What one row asks for: see `SamplingParams`; `number` in [0, 1) decides between the candidates."""

    temperature: float
    top_k: int
    top_p: float
    number: float

    @property
    def greedy(self) -> bool:
        """True when the most likely token is taken."""
        return self.temperature == 0 or self.top_k == 1

    @property
    def truncated(self) -> bool:
        """True when only some of the vocabulary are candidates."""
        return self.top_k > 0 or self.top_p < 1


def sample(logits: torch.Tensor, draws: Sequence[Draw]) -> list[int]:
    """The tokens drawn.

    Args:
        logits: float32 [rows, vocabulary].
        draws: one for each row.
    """
    tokens = logits.argmax(dim=-1).tolist()
    for row, draw in enumerate(draws):
        if not draw.greedy:
            tokens[row] = _one(logits[row], draw)
    return tokens


def _one(logits: torch.Tensor, draw: Draw) -> int:
    if not draw.truncated:
        return _invert(logits, draw)
    values, candidates = _candidates(logits, draw)
    return int(candidates[_invert(values, draw)])


def _candidates(logits: torch.Tensor, draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
    """The logits and tokens that top-k and top-p keep, best first; of equal ones the lower token first."""
    total = logits.double().logsumexp(dim=-1) if not draw.top_k else None
    head = max(_HEAD, 2 * draw.top_k)
    if head < logits.shape[-1]:
        # The limit nearly always lies among the best few; only where it does not is the whole row sorted.
        floor = logits.topk(head, sorted=False).values.amin()
        tokens = (logits > floor).nonzero().squeeze(-1)
        values, order = logits[tokens].sort(descending=True, stable=True)
        kept = _kept(values, draw, total)
        if kept < len(values) or draw.top_k == kept:
            return values[:kept], tokens[order[:kept]]
    values, order = logits.sort(descending=True, stable=True)
    kept = _kept(values, draw, total)
    return values[:kept], order[:kept]


def _kept(values: torch.Tensor, draw: Draw, total: torch.Tensor | None) -> int:
    """How many of the sorted `values` top-k, then top-p keep; at least one."""
    if draw.top_k:
        values = values[: draw.top_k]
    if draw.top_p == 1:
        return len(values)
    shares = (values.double() - (values.double().logsumexp(dim=-1) if total is None else total)).exp()
    reached = shares.cumsum(dim=-1) >= draw.top_p
    return min(len(values), int(torch.searchsorted(reached.int(), 1)) + 1)


def _invert(logits: torch.Tensor, draw: Draw) -> int:
    """The token at which the cumulative distribution passes the row's number."""
    # Subtracting the largest logit first keeps tiny temperatures finite.
    weights = ((logits - logits.amax()) / draw.temperature).exp()
    passed = weights.cumsum(dim=-1, dtype=torch.float64)
    # Rounding up must not point behind the last candidate.
    target = torch.minimum(draw.number * passed[-1], passed[-1].nextafter(torch.zeros((), dtype=torch.float64)))
    return int(torch.searchsorted(passed, target, right=True))
