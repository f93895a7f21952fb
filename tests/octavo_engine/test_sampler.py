"""The sampler against a plain NumPy twin, alone and in company."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from octavo_engine.random_numbers import uniform
from octavo_engine.sampler import Draw, sample


def twin(logits: np.ndarray, draw: Draw) -> int:
    """One row in plain NumPy, float64, whole sorts."""
    if draw.greedy:
        return int(logits.argmax())
    order = np.argsort(-logits, kind="stable") if draw.truncated else np.arange(len(logits))
    values = logits[order].astype(np.float64)
    if draw.top_k:
        values = values[: draw.top_k]
    if draw.top_p < 1:
        shares = np.exp(values - values.max())
        shares /= shares.sum()
        values = values[: int((np.cumsum(shares) < draw.top_p).sum()) + 1]
    weights = np.exp((values - values.max()) / draw.temperature)
    passed = np.cumsum(weights) / weights.sum()
    return int(order[min(int((passed <= draw.number).sum()), len(values) - 1)])


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
        values = logits[row].numpy()
        expected = twin(values, draw)
        # float32 weights may cross a boundary between two neighbours; a wrong candidate set would differ by far more.
        if together[row] != expected:
            nudged = {
                twin(
                    values, Draw(draw.temperature, draw.top_k, draw.top_p * p, min(max(draw.number + d, 0), 1 - 1e-12))
                )
                for d in (-1e-6, 0, 1e-6)
                for p in (1 - 1e-9, 1, 1 + 1e-9)
            }
            assert together[row] in nudged


def test_impossible_tokens_are_never_drawn() -> None:
    logits = torch.full((1, 1000), -torch.inf)
    logits[0, 3] = logits[0, 700] = 1.0
    numbers = (0.0, 0.25, 0.75, 1 - 2**-53)
    for truncation in ({"top_k": 0, "top_p": 1.0}, {"top_k": 50, "top_p": 1.0}, {"top_k": 0, "top_p": 0.99}):
        drawn = [sample(logits, [Draw(temperature=0.01, number=u, **truncation)])[0] for u in numbers]
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
