"""Which layout a matrix is computed in, and what that takes: plain arithmetic, known before loading."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

# What is asked for; "auto" takes the smallest layout that needs no rounding beyond that of the file.
Weights = Literal["auto", "bfloat16", "float32", "int8", "int4"]

_FOUR_BITS = frozenset({"Q4_0", "Q4_1", "Q4_K", "GPTQ 4-bit", "AWQ 4-bit"})
_EIGHT_BITS = frozenset(
    {"Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS", "MXFP4", "GPTQ 8-bit"}
)
_GROUP = 32
_GROUPS_OF_16 = frozenset({"Q2_K", "Q3_K", "Q6_K"})
_WITH_OFFSETS = frozenset({"Q4_1", "Q4_K", "Q5_1", "Q2_K", "Q5_K", "GPTQ 4-bit", "GPTQ 8-bit", "AWQ 4-bit"})


class Layout(StrEnum):
    """How a matrix lies in memory while it is computed with.

    int4: four bits a weight in groups of 32 with a scale and a zero point in bfloat16.
    int8: eight bits a weight in groups of 16 or 32 with a scale, and a zero point where the file has one.
    """

    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"
    INT8 = "int8"
    INT4 = "int4"


def choose_layout(form: str, rows: int, columns: int, weights: Weights) -> Layout:
    """The layout of one matrix.

    Args:
        form: the format that it is stored in, by name.
        rows: outputs.
        columns: inputs.
        weights: what is asked for. "int8" and "int4" round matrices that are stored in more bits.
    """
    if weights == "float32":
        return Layout.FLOAT32
    if weights == "bfloat16" or columns % _GROUP:
        return Layout.BFLOAT16
    if (weights == "int4" or (weights == "auto" and form in _FOUR_BITS)) and rows % 16 == 0:
        return Layout.INT4
    if weights != "auto" or form in _FOUR_BITS | _EIGHT_BITS:
        return Layout.INT8
    return Layout.BFLOAT16


def table_layout(layout: Layout) -> Layout:
    """The layout of the embeddings and of the head where matrices have `layout`: what is lost there is felt most."""
    return Layout.INT8 if layout is Layout.INT4 else layout


def layout_bytes(layout: Layout, form: str, rows: int, columns: int, *, one_path: bool) -> int:
    """Bytes of a matrix.

    Args:
        layout: what it is computed in.
        form: the format that it is stored in, which decides on groups and offsets.
        rows: outputs.
        columns: inputs.
        one_path: every number of rows is computed the same way, so that four bits are held once only.
    """
    values = rows * columns
    if layout is Layout.FLOAT32:
        return 4 * values
    if layout is Layout.BFLOAT16:
        return 2 * values
    if layout is Layout.INT4:
        # Each group has a scale and a zero point in bfloat16. Packed for few rows; plain halves of bytes for many.
        return (values // 2 + values // _GROUP * 4) * (1 if one_path else 2)
    numbers = 2 if form in _WITH_OFFSETS else 1
    return values + values // (16 if form in _GROUPS_OF_16 else _GROUP) * 2 * numbers
