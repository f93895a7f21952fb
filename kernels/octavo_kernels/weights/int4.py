"""Four bits a weight in groups of 32, each with a scale and a zero point in bfloat16."""

from __future__ import annotations

import torch

from octavo_kernels.weights.widened import widened_product

GROUP = 32
# Rows from which widening the matrix first is faster; see docs/benchmarks/weight-layouts.md.
CROSSING = 24
# The operators with an underscore are how torch offers its 4-bit product; there is no public name for them.
_ATEN = torch.ops.aten


class Int4Linear:
    """Weights (q - 8) * scale + zero.

    With few rows torch's own kernel multiplies: it reads a quarter of the bytes of bfloat16. Its packing is for it
    alone, so that the integers are held once more for many rows.
    """

    # Whoever made it rounded what was there in more bits; people are told.
    is_rounded = False

    def __init__(
        self, quants: torch.Tensor, *, scales: torch.Tensor, zeros: torch.Tensor, crossing: int | None = CROSSING
    ) -> None:
        """Pack a matrix.

        Args:
            quants: uint8 [outputs, inputs], 0 to 15; outputs a multiple of 16, inputs a multiple of 32.
            scales: [outputs, inputs / 32]; rounded to bfloat16.
            zeros: [outputs, inputs / 32]: the value of q = 8; rounded to bfloat16.
            crossing: rows from which another path computes; None for one path, so that no row depends on others.
        """
        self.rows, self.columns = quants.shape
        assert self.fits(self.rows, self.columns), f"{self.rows} x {self.columns} does not fit the int4 layout"
        self._packed: torch.Tensor = _ATEN._convert_weight_to_int4pack_for_cpu(quants.to(torch.int32), 1)  # noqa: SLF001
        scales, zeros = scales.to(torch.bfloat16), zeros.to(torch.bfloat16)
        # Group, output, scale and zero.
        self._scales_and_zeros = torch.stack((scales, zeros), dim=-1).transpose(0, 1).contiguous()
        self._crossing = crossing
        self._wide: tuple[torch.Tensor, torch.Tensor, torch.Tensor] | None = None
        if crossing is not None:
            runs = quants.view(self.rows, -1, 2, GROUP // 2)
            nibbles = torch.bitwise_or(runs[:, :, 0], runs[:, :, 1] << 4).view(self.rows, -1)
            self._wide = (nibbles, scales.contiguous(), zeros.contiguous())

    @staticmethod
    def fits(rows: int, columns: int) -> bool:
        """Whether a matrix of this shape can be packed."""
        return rows % 16 == 0 and columns % GROUP == 0

    @property
    def name(self) -> str:
        """What people are told."""
        return "int4, rounded" if self.is_rounded else "int4"

    @property
    def rows_invariant(self) -> bool:
        """Whether every number of rows is computed the same way."""
        return self._crossing is None

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._packed.nbytes + self._scales_and_zeros.nbytes + sum(part.nbytes for part in self._wide or ())

    def __call__(self, activations: torch.Tensor) -> torch.Tensor:
        """Multiply bfloat16 [tokens, columns] to bfloat16 [tokens, rows]."""
        if self._crossing is not None and len(activations) >= self._crossing:
            assert self._wide is not None
            nibbles, scales, zeros = self._wide
            return widened_product(activations, nibbles, scales=scales, offsets=zeros)
        result: torch.Tensor = _ATEN._weight_int4pack_mm_for_cpu(  # noqa: SLF001
            activations, self._packed, GROUP, self._scales_and_zeros
        )
        return result
