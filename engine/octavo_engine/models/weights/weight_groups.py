"""A matrix as small integers in groups, each group with a scale: how files store it and how it is computed."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import torch

# Groups that `quantize` makes.
GROUP = 32


@dataclass(frozen=True, slots=True)
class WeightGroups:
    """w[o, i] = integers[o, i] * scales[o, g] + offsets[o, g], where g is the group of input i.

    Attributes:
        integers: int8 [outputs, inputs].
        scales: float32 [outputs, groups].
        offsets: likewise, or None for none.
        bits: how many the integers need. Four: -8 to 7 without offsets, 0 to 15 with them.
        is_rounded: the file has the weights in more bits.
    """

    integers: torch.Tensor
    scales: torch.Tensor
    offsets: torch.Tensor | None
    bits: int
    is_rounded: bool = False

    @property
    def group(self) -> int:
        """Inputs of a group."""
        return self.integers.shape[1] // self.scales.shape[1]

    def values(self) -> torch.Tensor:
        """The weights, float32 [outputs, inputs]."""
        grouped = self.integers.view(*self.scales.shape, self.group)
        values = grouped * self.scales.unsqueeze(2)
        if self.offsets is not None:
            values += self.offsets.unsqueeze(2)
        return values.view(self.integers.shape)

    def times(self, scale: float) -> WeightGroups:
        """All weights multiplied."""
        if scale == 1.0:
            return self
        offsets = None if self.offsets is None else self.offsets * scale
        return dataclasses.replace(self, scales=self.scales * scale, offsets=offsets)


def joined(parts: list[WeightGroups]) -> WeightGroups:
    """Matrices one below the other; all or none have offsets, and their groups are equally long."""
    if len(parts) == 1:
        return parts[0]
    offsets = [part.offsets for part in parts if part.offsets is not None]
    assert len(offsets) in (0, len(parts)), "offsets stand everywhere or nowhere"
    return WeightGroups(
        torch.cat([part.integers for part in parts]),
        torch.cat([part.scales for part in parts]),
        torch.cat(offsets) if offsets else None,
        max(part.bits for part in parts),
        any(part.is_rounded for part in parts),
    )


def quantize(values: torch.Tensor, bits: int) -> WeightGroups:
    """Round a matrix to groups of 32.

    8 bits: symmetric, the largest weight of a group becomes 127. 4 bits: 0 to 15 between the smallest and the largest.

    Args:
        values: float [outputs, inputs]; inputs a multiple of 32.
        bits: 8 or 4.
    """
    grouped = values.float().view(values.shape[0], -1, GROUP)
    if bits == 8:
        scales = grouped.abs().amax(2) / 127
        integers = _divided(grouped, scales).round()
        return WeightGroups(integers.to(torch.int8).view(values.shape), scales, None, 8, is_rounded=True)
    assert bits == 4, "weights are rounded to 8 or 4 bits"
    low, high = grouped.amin(2), grouped.amax(2)
    scales = (high - low) / 15
    integers = _divided(grouped - low.unsqueeze(2), scales).round()
    return WeightGroups(integers.to(torch.int8).view(values.shape), scales, low, 4, is_rounded=True)


def _divided(grouped: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """Groups of equal weights have the scale 0."""
    return grouped / torch.where(scales == 0, 1.0, scales).unsqueeze(2)
