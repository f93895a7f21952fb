"""Four bits a weight in groups of 32, each with a scale and a zero point in bfloat16."""

from __future__ import annotations

import torch

GROUP = 32
# The operators with an underscore are how torch offers its 4-bit product; there is no public name for them.
_ATEN = torch.ops.aten


class Int4Linear:
    """Weights (q - 8) * scale + zero, in the packing of torch's own CPU kernel.

    Reads a quarter of the bytes of bfloat16, so it wins while memory is the limit: with few rows.
    """

    name = "int4"
    rows_invariant = True

    def __init__(self, quants: torch.Tensor, *, scales: torch.Tensor, zeros: torch.Tensor) -> None:
        """Pack a matrix.

        Args:
            quants: uint8 [outputs, inputs], 0 to 15; outputs a multiple of 16, inputs a multiple of 32.
            scales: [outputs, inputs / 32]; rounded to bfloat16.
            zeros: [outputs, inputs / 32]: the value of q = 8; rounded to bfloat16.
        """
        self._rows, self._columns = quants.shape
        assert self.fits(self._rows, self._columns), f"{self._rows} x {self._columns} does not fit the int4 layout"
        self._packed: torch.Tensor = _ATEN._convert_weight_to_int4pack_for_cpu(quants.to(torch.int32), 1)  # noqa: SLF001
        # Group, output, scale and zero.
        self._scales_and_zeros = torch.stack((scales, zeros), dim=-1).transpose(0, 1).to(torch.bfloat16).contiguous()

    @staticmethod
    def fits(rows: int, columns: int) -> bool:
        """Whether a matrix of this shape can be packed."""
        return rows % 16 == 0 and columns % GROUP == 0

    @property
    def rows(self) -> int:
        """Outputs."""
        return self._rows

    @property
    def columns(self) -> int:
        """Inputs."""
        return self._columns

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._packed.nbytes + self._scales_and_zeros.nbytes

    def __call__(self, activations: torch.Tensor) -> torch.Tensor:
        """Multiply bfloat16 [tokens, columns] to bfloat16 [tokens, rows]."""
        result: torch.Tensor = _ATEN._weight_int4pack_mm_for_cpu(  # noqa: SLF001
            activations, self._packed, GROUP, self._scales_and_zeros
        )
        return result
