"""The rotary tables of a model: cosine and sine by position, made as far as somebody needs them.

Formulas: the papers named in `RopeSpec`, as transformers' modeling_rope_utils computes them, in float32 as the
models were trained.
"""

from __future__ import annotations

import math

import torch

from octavo_engine.models.specification.rope_spec import RopeSpec

# Tables grow in steps of so many positions.
_STEP = 4096


class RotaryTable:
    """Cosines and sines of one rotation.

    Which factors serve a model that can be stretched is decided once, by the context of the engine: pages that were
    computed with others would not fit together.
    """

    def __init__(self, spec: RopeSpec, *, context: int, factors: torch.Tensor | None = None) -> None:
        """Prepare the table.

        Args:
            spec: the rotation.
            context: positions that the engine serves.
            factors: float32 [width / 2]: a divisor for each frequency, on top of the rotation's own.
        """
        self._frequencies, self._scale = _frequencies(spec, context)
        if factors is not None:
            self._frequencies = self._frequencies / factors
        self._limit = context
        self._cos = self._sin = torch.empty(0, len(self._frequencies))

    @property
    def nbytes(self) -> int:
        """Bytes of both tables when they have grown to their limit."""
        return 2 * 4 * self._limit * len(self._frequencies)

    def upto(self, positions: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Cosines and sines of `positions` positions at least, each float32 [positions, width / 2]."""
        known = len(self._cos)
        if known < positions:
            stop = max(positions, min(self._limit, -(-positions // _STEP) * _STEP))
            angles = torch.outer(torch.arange(known, stop, dtype=torch.float32), self._frequencies)
            self._cos = torch.cat((self._cos, angles.cos() * self._scale))
            self._sin = torch.cat((self._sin, angles.sin() * self._scale))
        return self._cos, self._sin


def _frequencies(spec: RopeSpec, context: int) -> tuple[torch.Tensor, float]:
    """Angle of each pair at position 1, and what cosines and sines are multiplied by."""
    exponents = torch.arange(0, spec.width, 2, dtype=torch.float32) / spec.width
    if spec.kind == "linear":
        return 1.0 / spec.base**exponents / spec.factor, 1.0
    if spec.kind == "dynamic":
        stretch = spec.factor * max(context, spec.original_context) / spec.original_context - (spec.factor - 1)
        return 1.0 / (spec.base * stretch ** (spec.width / (spec.width - 2))) ** exponents, 1.0
    if spec.kind == "llama3":
        return _llama3(1.0 / spec.base**exponents, spec), 1.0
    if spec.kind == "yarn":
        return _yarn(spec.base**exponents, spec), _yarn_scale(spec)
    if spec.kind == "longrope":
        is_long = context > spec.original_context
        factors = torch.tensor(spec.long_factors if is_long else spec.short_factors, dtype=torch.float32)
        return 1.0 / (factors * spec.base**exponents), _longrope_scale(spec)
    return 1.0 / spec.base**exponents, 1.0


def _llama3(frequencies: torch.Tensor, spec: RopeSpec) -> torch.Tensor:
    """Long wavelengths are stretched, short ones stay, those between blend."""
    turns = spec.original_context * frequencies / (2 * math.pi)
    blend = ((turns - spec.low_frequency) / (spec.high_frequency - spec.low_frequency)).clamp(0, 1)
    return (1 - blend) * frequencies / spec.factor + blend * frequencies


def _yarn(wavelengths: torch.Tensor, spec: RopeSpec) -> torch.Tensor:
    """Dimensions that turn often within the original context stay, those that turn rarely are stretched."""

    def dimension(turns: float) -> float:
        return spec.width * math.log(spec.original_context / (turns * 2 * math.pi)) / (2 * math.log(spec.base))

    low, high = dimension(spec.beta_fast), dimension(spec.beta_slow)
    if spec.truncates:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, spec.width - 1)
    ramp = (torch.arange(len(wavelengths), dtype=torch.float32) - low) / (high - low if high != low else 0.001)
    stretched = ramp.clamp(0, 1)
    return stretched / (spec.factor * wavelengths) + (1 - stretched) / wavelengths


def _yarn_scale(spec: RopeSpec) -> float:
    if spec.attention_factor is not None:
        return spec.attention_factor
    return 0.1 * math.log(spec.factor) + 1.0 if spec.factor > 1 else 1.0


def _longrope_scale(spec: RopeSpec) -> float:
    if spec.attention_factor is not None:
        return spec.attention_factor
    return math.sqrt(1 + math.log(spec.factor) / math.log(spec.original_context)) if spec.factor > 1 else 1.0
