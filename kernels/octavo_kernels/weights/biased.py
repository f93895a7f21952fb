"""A matrix with a bias."""

from __future__ import annotations

import torch

from octavo_kernels.weights.layout import Linear


class Biased:
    """Adds a vector to every row of a product, in float32 before the one rounding of the sum."""

    def __init__(self, product: Linear, bias: torch.Tensor) -> None:
        """Hold a matrix in some layout and its bias, float32 [rows]."""
        assert bias.dtype == torch.float32, "the bias is float32"
        assert bias.shape == (product.rows,), "the bias has a number for each output"
        self._product = product
        self._bias = bias

    @property
    def name(self) -> str:
        """The matrix's name."""
        return self._product.name

    @property
    def rows(self) -> int:
        """Outputs."""
        return self._product.rows

    @property
    def columns(self) -> int:
        """Inputs."""
        return self._product.columns

    @property
    def nbytes(self) -> int:
        """Bytes of both."""
        return self._product.nbytes + self._bias.nbytes

    @property
    def rows_invariant(self) -> bool:
        """As the matrix's."""
        return self._product.rows_invariant

    def __call__(self, activations: torch.Tensor) -> torch.Tensor:
        """[tokens, columns] -> [tokens, rows]."""
        return self._product(activations).add_(self._bias)
