"""Tables of token embeddings: rows that are looked up."""

from __future__ import annotations

from typing import Protocol

import torch

from octavo_kernels.operations.widen_groups import widen_groups
from octavo_kernels.weights.dense import BFloat16Linear, Float32Linear
from octavo_kernels.weights.int8 import Int8Linear
from octavo_kernels.weights.layout import Linear


class Embedding(Protocol):
    """A table [tokens, hidden] in some layout.

    Attributes:
        nbytes: bytes that the layout holds.
    """

    @property
    def nbytes(self) -> int: ...  # noqa: D102

    def __call__(self, tokens: torch.Tensor) -> torch.Tensor:
        """Look up int32 [tokens]: float32 [tokens, hidden]."""
        ...

    def head(self, *, one_path: bool) -> Linear:
        """The product with the same table, which is not held twice; `one_path` for every number of rows."""
        ...


class DenseEmbedding:
    """A table in bfloat16 or float32."""

    def __init__(self, table: torch.Tensor) -> None:
        """Hold `table` [tokens, hidden]."""
        self._table = table
        self.nbytes = table.nbytes

    def __call__(self, tokens: torch.Tensor) -> torch.Tensor:
        """See `Embedding`."""
        return self._table[tokens].float()

    def head(self, *, one_path: bool) -> Linear:
        """See `Embedding`."""
        return Float32Linear(self._table) if self._table.dtype == torch.float32 else BFloat16Linear(self._table)


class PackedEmbedding:
    """A table in eight bits, as `Int8Linear` has its matrix."""

    is_rounded = False

    def __init__(self, integers: torch.Tensor, *, scales: torch.Tensor, offsets: torch.Tensor | None = None) -> None:
        """Hold int8 [tokens, hidden] with scales and offsets [tokens, groups]; these are rounded to bfloat16."""
        self._integers = integers
        self._scales = scales.to(torch.bfloat16).contiguous()
        self._offsets = None if offsets is None else offsets.to(torch.bfloat16).contiguous()
        parts = (self._integers, self._scales, self._offsets)
        self.nbytes = sum(part.nbytes for part in parts if part is not None)

    def __call__(self, tokens: torch.Tensor) -> torch.Tensor:
        """See `Embedding`."""
        out = torch.empty(len(tokens), self._integers.shape[1])
        offsets = None if self._offsets is None else self._offsets[tokens]
        widen_groups(self._integers[tokens], scales=self._scales[tokens], offsets=offsets, out=out)
        return out

    def head(self, *, one_path: bool) -> Linear:
        """See `Embedding`."""
        crossing = {"crossing": None} if one_path else {}
        head = Int8Linear(self._integers, scales=self._scales, offsets=self._offsets, **crossing)
        head.is_rounded = self.is_rounded
        return head
