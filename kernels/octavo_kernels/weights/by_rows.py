"""Two layouts of one matrix, chosen by the number of rows."""

from __future__ import annotations

import torch

from octavo_kernels.weights.layout import Linear


class ByRows:
    """Uses `few` up to `crossing` rows and `many` beyond; both hold the same matrix."""

    rows_invariant = False

    def __init__(self, few: Linear, many: Linear, *, crossing: int) -> None:
        """Hold both layouts."""
        assert (few.rows, few.columns) == (many.rows, many.columns), "two layouts of one matrix have one shape"
        self._few = few
        self._many = many
        self._crossing = crossing

    @property
    def name(self) -> str:
        """Both names and where the second takes over."""
        return f"{self._few.name} to {self._crossing} rows, then {self._many.name}"

    @property
    def rows(self) -> int:
        """Outputs."""
        return self._many.rows

    @property
    def columns(self) -> int:
        """Inputs."""
        return self._many.columns

    @property
    def nbytes(self) -> int:
        """Bytes of both."""
        return self._few.nbytes + self._many.nbytes

    def __call__(self, activations: torch.Tensor) -> torch.Tensor:
        """[tokens, columns] -> [tokens, rows]."""
        return (self._few if activations.shape[0] <= self._crossing else self._many)(activations)
