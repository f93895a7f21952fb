"""Where the weights of a model lie in its files, and how they are written there. Arithmetic only; loads no torch."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

from octavo_engine.models.files.tensor_type import TensorType


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """One tensor as its file has it.

    Attributes:
        shape: outermost dimension first, so that a matrix is [outputs, inputs].
        type: its format.
        offset: of its first byte in the file.
        nbytes: its length.
        file: number of the file among those of the model.
    """

    shape: tuple[int, ...]
    type: TensorType
    offset: int
    nbytes: int
    file: int = 0

    @property
    def format(self) -> str:
        """The format's name."""
        return self.type.name

    def rows(self, start: int, stop: int) -> TensorInfo:
        """The entries `start` to `stop` of the outermost dimension."""
        row = self.nbytes // self.shape[0]
        shape = (stop - start, *self.shape[1:])
        return replace(self, shape=shape, offset=self.offset + start * row, nbytes=(stop - start) * row)

    def part(self, index: int) -> TensorInfo:
        """One entry of the outermost dimension, without that dimension."""
        entry = self.rows(index, index + 1)
        return replace(entry, shape=self.shape[1:])


@dataclass(frozen=True, slots=True)
class Stack:
    """Matrices of one shape that lie apart, as one tensor [matrices, outputs, inputs]."""

    parts: tuple[Matrix, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of matrices, outputs, inputs."""
        return (len(self.parts), *self.parts[0].shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all."""
        return sum(part.nbytes for part in self.parts)

    @property
    def format(self) -> str:
        """The matrices' format."""
        return self.parts[0].format

    def part(self, index: int) -> Matrix:
        """One matrix."""
        return self.parts[index]


@dataclass(frozen=True)
class Packed:
    """A matrix of integers that were packed into words, with scales and zero points for groups of inputs.

    w[o, i] = (q[o, i] - z[o, g]) * s[o, g]. Formats: AutoGPTQ's and AutoAWQ's ("gemm") checkpoints.

    Attributes:
        method: "gptq": eight inputs in a word; "awq": eight outputs in a word, even ones first.
        bits: of an integer: 4, for GPTQ also 8.
        zero_shift: what is added to stored zero points: 1 in GPTQ's first format.
        words: int32 [inputs * bits / 32, outputs] (gptq) or [inputs, outputs * bits / 32] (awq).
        zeros: int32 [groups, outputs * bits / 32].
        scales: float16 [groups, outputs].
        group_of: int32 [inputs]: the group of each input, or None where they follow one another.
    """

    method: str
    bits: int
    zero_shift: int
    words: TensorInfo
    zeros: TensorInfo
    scales: TensorInfo
    group_of: TensorInfo | None = None

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Outputs and inputs."""
        per_word = 32 // self.bits
        if self.method == "gptq":
            return (self.words.shape[1], self.words.shape[0] * per_word)
        return (self.words.shape[1] * per_word, self.words.shape[0])

    @property
    def nbytes(self) -> int:
        """Bytes of all parts."""
        parts = (self.words, self.zeros, self.scales, self.group_of)
        return sum(part.nbytes for part in parts if part is not None)

    @property
    def format(self) -> str:
        """Such as "GPTQ 4-bit"."""
        return f"{self.method.upper()} {self.bits}-bit"


@dataclass(frozen=True, slots=True)
class Scaled:
    """A matrix of small floating-point numbers with a scale for each block.

    Attributes:
        values: [outputs, inputs].
        scales: a number for each block, [block rows, block columns] or flattened.
        block: outputs and inputs of a block; the last ones may be smaller.
    """

    values: TensorInfo
    scales: TensorInfo
    block: tuple[int, int]

    @property
    def shape(self) -> tuple[int, ...]:
        """Outputs and inputs."""
        return self.values.shape

    @property
    def nbytes(self) -> int:
        """Bytes of values and scales."""
        return self.values.nbytes + self.scales.nbytes

    @property
    def format(self) -> str:
        """The values' format."""
        return self.values.format


Matrix = TensorInfo | Packed | Scaled
Stored = Matrix | Stack


def weights_in(stored: Stored) -> int:
    """Number of weights."""
    return math.prod(stored.shape)
