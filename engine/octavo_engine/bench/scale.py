"""How much a suite does: the full measurement, or a quick look that shows that it works."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scale:
    """Counts and lengths, in requests and tokens, of the suites."""

    name: str
    waste_requests: int
    waste_prompts: tuple[int, int]
    waste_outputs: tuple[int, int]
    branch_history: int
    branches: int
    branch_tokens: int
    turn_histories: tuple[int, ...]
    repetitions: int
    batching_requests: int
    batching_outputs: tuple[int, int]
    loads: tuple[float, ...]
    policy_requests: int
    policy_outputs: tuple[int, int]
    swap_lengths: tuple[int, ...]
    openings: int
    layout_tokens: int


FULL = Scale(
    name="full",
    waste_requests=32,
    waste_prompts=(64, 1024),
    waste_outputs=(64, 512),
    branch_history=4000,
    branches=16,
    branch_tokens=48,
    turn_histories=(500, 1500, 4000),
    repetitions=5,
    batching_requests=24,
    batching_outputs=(16, 1024),
    loads=(0.6, 1.5),
    policy_requests=30,
    policy_outputs=(16, 384),
    swap_lengths=(500, 1500, 4000),
    openings=9,
    layout_tokens=2000,
)
QUICK = Scale(
    name="quick",
    waste_requests=3,
    waste_prompts=(64, 200),
    waste_outputs=(8, 24),
    branch_history=200,
    branches=4,
    branch_tokens=16,
    turn_histories=(100, 200),
    repetitions=1,
    batching_requests=6,
    batching_outputs=(4, 32),
    loads=(2.0,),
    policy_requests=9,
    policy_outputs=(4, 24),
    swap_lengths=(100, 200),
    openings=1,
    layout_tokens=100,
)
SCALES = {scale.name: scale for scale in (FULL, QUICK)}
