"""What a model is made of, as far as its memory depends on it. Plain numbers, known from the headers alone."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MatrixCount:
    """Matrices of one kind.

    Attributes:
        form: the format that they are stored in, such as "Q4_K".
        rows, columns: outputs and inputs.
        count: how many there are.
        is_table: embeddings or the head, which are kept in eight bits at least.
    """

    form: str
    rows: int
    columns: int
    count: int
    is_table: bool = False


@dataclass(frozen=True, slots=True)
class ModelSizes:
    """The parts of a model.

    Attributes:
        matrices: all matrices.
        vectors: numbers in norms, biases and the like.
        rotary_pairs: angles of a position, of all rotations.
        kv_values: numbers that one position has in the KV pages.
        step_values: numbers that one token has in the buffers of a step.
    """

    matrices: tuple[MatrixCount, ...]
    vectors: int
    rotary_pairs: int
    kv_values: int
    step_values: int
