"""Matrices in different layouts, one below the other."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from octavo_kernels.weights.layout import Linear


class Joined:
    """Products of the same rows with several matrices, side by side."""

    def __init__(self, parts: Sequence[Linear]) -> None:
        """Hold the matrices, which have the same inputs."""
        assert len({part.columns for part in parts}) == 1, "joined matrices have the same inputs"
        self._parts = tuple(parts)

    @property
    def name(self) -> str:
        """The names of the layouts."""
        return " and ".join(dict.fromkeys(part.name for part in self._parts))

    @property
    def rows(self) -> int:
        """Outputs."""
        return sum(part.rows for part in self._parts)

    @property
    def columns(self) -> int:
        """Inputs."""
        return self._parts[0].columns

    @property
    def nbytes(self) -> int:
        """Bytes of all."""
        return sum(part.nbytes for part in self._parts)

    @property
    def rows_invariant(self) -> bool:
        """Whether all are."""
        return all(part.rows_invariant for part in self._parts)

    def __call__(self, activations: torch.Tensor) -> torch.Tensor:
        """[tokens, columns] -> [tokens, rows]."""
        return torch.cat([part(activations) for part in self._parts], dim=1)
