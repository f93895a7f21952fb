"""The sampler against a plain NumPy twin, alone and in company."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from octavo_engine.random_numbers import uniform
from octavo_engine.sampler import Draw, sample


def candidates(logits: np.ndarray, draw: Draw) -> tuple[np.ndarray, np.ndarray]:
    """One row in plain NumPy, float64, whole sorts: the candidates and where each one's share of [0, 1) ends."""
    order = np.argsort(-logits, kind="stable") if draw.truncated else np.arange(len(logits))
    values = logits[order].astype(np.float64)
    if draw.top_k:
        values = values[: draw.top_k]
    if draw.top_p < 1:
        shares = np.exp(values - values.max())
        values = values[: int((np.cumsum(shares / shares.sum()) < draw.top_p).sum()) + 1]
    weights = np.exp((values - values.max()) / draw.temperature)
    return order[: len(values)], np.cumsum(weights) / weights.sum()


def agrees(token: int, logits: np.ndarray, draw: Draw) -> bool:
    """Whether `token` is what the twin draws, but for the rounding of float32 weights at the ends of its share."""
    if draw.greedy:
        return token == int(logits.argmax())
    for nudge in (0.0, -1e-9, 1e-9):
        tokens, ends = candidates(logits, replace(draw, top_p=draw.top_p * (1 + nudge)) if draw.top_p < 1 else draw)
        if token in tokens:
            place = int(np.flatnonzero(tokens == token)[0])
            begin = ends[place - 1] if place else 0.0
            if begin - 1e-6 <= draw.number <= ends[place] + 1e-6:
                return True
    return False


draws = st.builds(
    Draw,
    temperature=st.sampled_from([0.0, 0.1, 0.7, 1.0, 2.0]),
    top_k=st.sampled_from([0, 1, 2, 40, 3000]),
    top_p=st.sampled_from([1.0, 0.999, 0.9, 0.5, 1e-6]),
    number=st.floats(0, 1, exclude_max=True),
)


@settings(deadline=None)
@given(st.lists(draws, min_size=1, max_size=6), st.sampled_from([1, 7, 2000]), st.integers(0, 1000), st.booleans())
def test_each_row_equals_its_twin_whatever_its_neighbours(
    rows: list[Draw], vocabulary: int, seed: int, ties: bool
) -> None:
    logits = torch.randn(len(rows), vocabulary, generator=torch.Generator().manual_seed(seed)) * 3
    if ties:
        logits = logits.round()
    together = sample(logits, rows)
    for row, draw in enumerate(rows):
        assert sample(logits[row : row + 1], [draw]) == [together[row]]
        assert agrees(together[row], logits[row].numpy(), draw)


def test_impossible_tokens_are_never_drawn() -> None:
    logits = torch.full((1, 1000), -torch.inf)
    logits[0, 3] = logits[0, 700] = 1.0
    numbers = (0.0, 0.25, 0.75, 1 - 2**-53)
    for top_k, top_p in ((0, 1.0), (50, 1.0), (0, 0.99)):
        drawn = [sample(logits, [Draw(temperature=0.01, top_k=top_k, top_p=top_p, number=u)])[0] for u in numbers]
        assert drawn == [3, 3, 700, 700]


@pytest.mark.parametrize("top_k", [0, 5])
def test_frequencies_follow_the_distribution(top_k: int) -> None:
    logits = torch.tensor([[0.0, 1.0, -1.0, 2.0, 0.5, -2.0]])
    count = 20_000
    drawn = [
        sample(logits, [Draw(temperature=0.8, top_k=top_k, top_p=1.0, number=uniform(7, 0, position))])[0]
        for position in range(count)
    ]
    values = logits[0].double()
    if top_k:
        values[5] = -torch.inf
    expected = (values / 0.8).softmax(-1).numpy() * count
    observed = np.bincount(drawn, minlength=6)
    used = expected > 0
    assert observed[~used].sum() == 0
    chi_square = ((observed[used] - expected[used]) ** 2 / expected[used]).sum()
    # The 0.1 % points of the chi-square distribution with 5 and 4 degrees of freedom.
    assert chi_square < (20.5 if top_k == 0 else 18.5)


def test_random_numbers_depend_on_their_counter_only() -> None:
    assert uniform(1, 0, 5) == uniform(1, 0, 5)
    numbers = {uniform(seed, index, position) for seed in (0, 1) for index in (0, 1) for position in range(500)}
    assert len(numbers) == 2000
    assert 0.45 < sum(numbers) / len(numbers) < 0.55
