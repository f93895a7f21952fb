"""What all weight layouts have in common."""

from __future__ import annotations

from typing import Protocol

import torch


class Linear(Protocol):
    """A weight matrix [outputs, inputs] in some layout.

    Attributes:
        name: the layout's name for people.
        rows: outputs of the matrix.
        columns: inputs of the matrix.
        nbytes: bytes that the layout holds.
        rows_invariant: a row's result does not depend on how many rows are multiplied with it, bit for bit.
    """

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def rows(self) -> int: ...  # noqa: D102
    @property
    def columns(self) -> int: ...  # noqa: D102
    @property
    def nbytes(self) -> int: ...  # noqa: D102
    @property
    def rows_invariant(self) -> bool: ...  # noqa: D102

    def __call__(self, activations: torch.Tensor) -> torch.Tensor:
        """Multiply [tokens, columns] by the transposed matrix, to [tokens, rows] in the dtype of `activations`."""
        ...
