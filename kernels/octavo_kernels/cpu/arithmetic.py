"""Arithmetic of kernels on vectors; arguments are called a, b, c in order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import types

from octavo_kernels.cpu.vector import (
    FLOATS,
    I32,
    INTS,
    LANES,
    VECTOR,
    Builder,
    call_llvm,
    constant,
    first_mask,
    fused,
    integers,
    operation,
    spread,
)

# exp(x) = 2^n * exp(r), n = round(x / ln 2), |r| <= ln 2 / 2; ln 2 in two parts (Cody and Waite), exp(r) by its
# Taylor polynomial of degree 7: the remainder is below half a unit in the last place.
_LOG2_E = 1.4426950408889634
_LN2_HIGH = 0.693359375
_LN2_LOW = -2.12194440e-4
_EXP_TERMS = (1 / 5040, 1 / 720, 1 / 120, 1 / 24, 1 / 6, 1 / 2, 1.0, 1.0)
_EXP_LIMIT = 87.0


def _halves(builder: Builder, vector: ir.Value, combine: Callable[[ir.Value, ir.Value], ir.Value]) -> ir.Value:
    """Fold the upper half of the lanes onto the lower one until one lane is left."""
    width = LANES
    while width > 1:
        width //= 2
        upper = [min(lane + width, LANES - 1) for lane in range(LANES)]
        vector = combine(vector, builder.shuffle_vector(vector, vector, ir.Constant(INTS, upper)))
    return builder.extract_element(vector, I32(0))


@operation(VECTOR, types.float32)
def splat(builder: Builder, values: Any) -> ir.Value:
    """The number a in every lane."""
    return spread(builder, values[0])


@operation(VECTOR, VECTOR, VECTOR, VECTOR)
def fma(builder: Builder, values: Any) -> ir.Value:
    """The product a * b plus c, rounded once."""
    return fused(builder, *values)


@operation(VECTOR, VECTOR, VECTOR)
def add(builder: Builder, values: Any) -> ir.Value:
    """The sum of a and b."""
    return builder.fadd(*values)


@operation(VECTOR, VECTOR, VECTOR)
def sub(builder: Builder, values: Any) -> ir.Value:
    """The difference of a and b."""
    return builder.fsub(*values)


@operation(VECTOR, VECTOR, VECTOR)
def mul(builder: Builder, values: Any) -> ir.Value:
    """The product of a and b."""
    return builder.fmul(*values)


@operation(VECTOR, VECTOR, VECTOR)
def div(builder: Builder, values: Any) -> ir.Value:
    """The quotient of a and b."""
    return builder.fdiv(*values)


@operation(types.float32, VECTOR)
def total(builder: Builder, values: Any) -> ir.Value:
    """The sum of the lanes of a, by halves."""
    return _halves(builder, values[0], builder.fadd)


@operation(types.float32, VECTOR)
def largest(builder: Builder, values: Any) -> ir.Value:
    """The largest lane of a."""

    def larger(a: ir.Value, b: ir.Value) -> ir.Value:
        return builder.select(builder.fcmp_ordered(">", a, b), a, b)

    return _halves(builder, values[0], larger)


@operation(VECTOR, VECTOR, types.intp, types.float32)
def first_lanes(builder: Builder, values: Any) -> ir.Value:
    """The first b lanes of a, then c in the others; b may lie outside 0 to 16."""
    vector, count, other = values
    return builder.select(first_mask(builder, count), vector, spread(builder, other))


@operation(VECTOR, VECTOR, types.intp, types.float32)
def last_lanes(builder: Builder, values: Any) -> ir.Value:
    """The lanes of a from number b on, then c in those before; b may lie outside 0 to 16."""
    vector, count, other = values
    return builder.select(first_mask(builder, count), spread(builder, other), vector)


@operation(VECTOR, VECTOR)
def exp(builder: Builder, values: Any) -> ir.Value:
    """Euler's number to the power of each lane, within 2 units in the last place; 0 below -87, and at 87 at most."""
    argument = values[0]
    vanishes = builder.fcmp_ordered("<", argument, constant(-_EXP_LIMIT))
    overflows = builder.fcmp_ordered(">", argument, constant(_EXP_LIMIT))
    x = builder.select(overflows, constant(_EXP_LIMIT), builder.select(vanishes, constant(0.0), argument))
    scaled = builder.fmul(x, constant(_LOG2_E))
    power = call_llvm(builder, "llvm.rint.v16f32", FLOATS, scaled)
    rest = fused(builder, power, constant(-_LN2_HIGH), x)
    rest = fused(builder, power, constant(-_LN2_LOW), rest)
    result = constant(_EXP_TERMS[0])
    for term in _EXP_TERMS[1:]:
        result = fused(builder, result, rest, constant(term))
    exponent = builder.shl(builder.fptosi(power, INTS), integers(23))
    grown = builder.bitcast(builder.add(builder.bitcast(result, INTS), exponent), FLOATS)
    return builder.select(vanishes, constant(0.0), grown)
