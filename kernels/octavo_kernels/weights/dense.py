"""Dense layouts: the matrix as it is, in bfloat16 or float32."""

from __future__ import annotations

import torch


class _Dense:
    """A contiguous matrix of one dtype, multiplied by torch."""

    name: str
    rows_invariant: bool
    dtype: torch.dtype

    def __init__(self, weight: torch.Tensor) -> None:
        """Hold `weight` [outputs, inputs]."""
        assert weight.dtype == self.dtype, f"{weight.dtype} given to the {self.name} layout"
        assert weight.is_contiguous(), "a dense layout holds a contiguous matrix"
        self.weight = weight

    @property
    def rows(self) -> int:
        """Outputs."""
        return self.weight.shape[0]

    @property
    def columns(self) -> int:
        """Inputs."""
        return self.weight.shape[1]

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.weight.nbytes

    def __call__(self, activations: torch.Tensor) -> torch.Tensor:
        """[tokens, columns] -> [tokens, rows]."""
        return torch.nn.functional.linear(activations, self.weight)


class BFloat16Linear(_Dense):
    """Two bytes a weight; a row is summed in the same order however many rows there are.

    oneDNN's product does so from two rows on. For one row it has another path, whose sums round otherwise in some three
    of a million outputs (measured with 1,536 inputs), so that a single row is computed twice.
    """

    name = "bfloat16"
    rows_invariant = True
    dtype = torch.bfloat16

    def __call__(self, activations: torch.Tensor) -> torch.Tensor:
        """[tokens, columns] -> [tokens, rows]."""
        if activations.shape[0] == 1:
            return super().__call__(activations.expand(2, -1).contiguous())[:1]
        return super().__call__(activations)


class Float32Linear(_Dense):
    """Four bytes a weight, the exact reference; the library sums in another order for another number of rows."""

    name = "float32"
    rows_invariant = False
    dtype = torch.float32
