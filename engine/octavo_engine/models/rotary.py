"""The rotary tables of a model: cosine and sine by position."""

from __future__ import annotations

import torch

from octavo_engine.models.specification import ModelSpec


def rotary_tables(spec: ModelSpec, factors: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosines and sines of all positions, each float32 [context_length, rope_width / 2].

    Angles are computed in float32, as in the training of the models.

    Args:
        spec: the model.
        factors: float32 [rope_width / 2]: a divisor for each frequency, or None.
    """
    exponents = torch.arange(0, spec.rope_width, 2, dtype=torch.float32) / spec.rope_width
    frequencies = 1.0 / (spec.rope_base**exponents * spec.rope_scale)
    if factors is not None:
        frequencies = frequencies / factors
    angles = torch.outer(torch.arange(spec.context_length, dtype=torch.float32), frequencies)
    return angles.cos(), angles.sin()
