"""How positions become angles: the variants of rotary position embedding. Plain values; loads no torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

RopeKind = Literal["default", "linear", "dynamic", "yarn", "llama3", "longrope"]
ROPE_KINDS: tuple[RopeKind, ...] = ("default", "linear", "dynamic", "yarn", "llama3", "longrope")


@dataclass(frozen=True, slots=True, kw_only=True)
class RopeSpec:
    """One rotation (Su et al. 2021) and how it is stretched to longer contexts.

    Attributes:
        width: leading dimensions of a head that are rotated.
        base: base of the frequencies.
        kind: "linear" (Chen et al. 2023), "dynamic" (NTK-aware), "yarn" (Peng et al. 2023), "llama3" (by wavelength),
            "longrope" (Ding et al. 2024: a divisor for each frequency).
        factor: how much longer the context became.
        original_context: positions before stretching.
        attention_factor: multiplies cosines and sines; None derives it as the kind's paper does.
        low_frequency, high_frequency: of "llama3".
        beta_fast, beta_slow: of "yarn": rotations within the original context between which it blends.
        truncates: of "yarn": the blend begins and ends at whole dimensions.
        short_factors, long_factors: of "longrope"; the long ones serve engines whose context is over the original.
    """

    width: int
    base: float
    kind: RopeKind = "default"
    factor: float = 1.0
    original_context: int = 0
    attention_factor: float | None = None
    low_frequency: float = 1.0
    high_frequency: float = 4.0
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    truncates: bool = True
    short_factors: tuple[float, ...] = ()
    long_factors: tuple[float, ...] = ()

    def reach(self, stated: int) -> int:
        """Positions that a model can use whose files state `stated`: some state what they had before stretching."""
        return max(stated, int(self.original_context * self.factor)) if self.kind in ("dynamic", "yarn") else stated
