"""Eight bits a weight in groups of 16 or more, each with a scale and, where the file has one, an offset."""

from __future__ import annotations

import torch

from octavo_kernels.operations.group_product import group_product
from octavo_kernels.weights.widened import widened_product

# Rows from which widening the matrix first is faster; see docs/benchmarks/weight-layouts.md.
CROSSING = 12


class Int8Linear:
    """Weights integer * scale + offset, where scales and offsets are rounded to bfloat16."""

    # Whoever made it rounded what was there in more bits; people are told.
    is_rounded = False

    def __init__(
        self,
        integers: torch.Tensor,
        *,
        scales: torch.Tensor,
        offsets: torch.Tensor | None = None,
        crossing: int | None = CROSSING,
    ) -> None:
        """Hold a matrix.

        Args:
            integers: int8 [outputs, inputs], contiguous; inputs a multiple of 32.
            scales: [outputs, groups].
            offsets: likewise, or None.
            crossing: rows from which another path computes; None for one path, so that no row depends on others.
        """
        self.rows, self.columns = integers.shape
        assert self.fits(self.rows, self.columns), f"{self.rows} x {self.columns} does not fit the int8 layout"
        self._integers = integers
        self._scales = scales.to(torch.bfloat16).contiguous()
        self._offsets = None if offsets is None else offsets.to(torch.bfloat16).contiguous()
        self._crossing = crossing

    @staticmethod
    def fits(rows: int, columns: int) -> bool:
        """Whether a matrix of this shape can be held."""
        return rows > 0 and columns % 32 == 0

    @property
    def name(self) -> str:
        """What people are told."""
        return "int8, rounded" if self.is_rounded else "int8"

    @property
    def rows_invariant(self) -> bool:
        """Whether every number of rows is computed the same way."""
        return self._crossing is None

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        offsets = 0 if self._offsets is None else self._offsets.nbytes
        return self._integers.nbytes + self._scales.nbytes + offsets

    def __call__(self, activations: torch.Tensor) -> torch.Tensor:
        """[tokens, columns] -> [tokens, rows]."""
        if self._crossing is not None and len(activations) >= self._crossing:
            return widened_product(activations, self._integers, scales=self._scales, offsets=self._offsets)
        out = torch.empty(len(activations), self.rows, dtype=activations.dtype)
        group_product(activations, self._integers, scales=self._scales, offsets=self._offsets, out=out)
        return out
