"""Vectors of 16 float32 lanes for kernels, with every operation in a stated order.

No compiler may reorder what is written with these: a kernel's result depends on its source alone, not on what was
vectorised, so one row's arithmetic is the same with one row and with 500. LLVM splits the vectors where registers are
narrower. Here: the type, and what the operations of `memory` and `arithmetic` are built from.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, models, register_model

LANES = 16
F32 = ir.FloatType()
I32 = ir.IntType(32)
I16 = ir.IntType(16)
I64 = ir.IntType(64)
FLOATS = ir.VectorType(F32, LANES)
INTS = ir.VectorType(I32, LANES)
SHORTS = ir.VectorType(I16, LANES)
BYTES = ir.VectorType(ir.IntType(8), LANES)

# llvmlite has no types; this is ir.IRBuilder.
Builder: TypeAlias = Any
Emit = Callable[[Builder, Any], ir.Value]


class VectorType(types.Type):
    """The type of a vector in a kernel."""

    def __init__(self) -> None:
        super().__init__(name="Vector16")


VECTOR = VectorType()


@register_model(VectorType)
class _VectorModel(models.PrimitiveModel):  # type: ignore[misc]  # numba has no types
    """A vector is one LLVM value, so it lives in registers."""

    def __init__(self, manager: Any, kind: types.Type) -> None:
        super().__init__(manager, kind, FLOATS)


def operation(result: types.Type, *arguments: types.Type) -> Callable[[Emit], Any]:
    """Make an intrinsic of fixed types from a function that emits its LLVM instructions."""

    def decorate(emit: Emit) -> Any:
        def code(_context: Any, builder: Builder, _signature: Any, values: Any) -> ir.Value:
            return emit(builder, values)

        signature = result(*arguments)
        return intrinsic(_typer(emit.__name__, len(arguments), signature, code))

    return decorate


def _typer(name: str, count: int, signature: Any, code: Any) -> Any:
    """An intrinsic's typing function; the number of arguments is read off its Python signature."""
    if count == 1:

        def typer(_context: Any, a: Any) -> Any:  # noqa: ARG001
            return signature, code
    elif count == 2:

        def typer(_context: Any, a: Any, b: Any) -> Any:  # type: ignore[misc]  # noqa: ARG001
            return signature, code
    else:

        def typer(_context: Any, a: Any, b: Any, c: Any) -> Any:  # type: ignore[misc]  # noqa: ARG001
            return signature, code

    typer.__name__ = typer.__qualname__ = name
    return typer


def pointer(builder: Builder, address: ir.Value, kind: ir.Type) -> ir.Value:
    """The address as a pointer to `kind`."""
    return builder.inttoptr(address, kind.as_pointer())


def load_value(builder: Builder, address: ir.Value, kind: ir.Type, alignment: int) -> ir.Value:
    """Read a value of `kind` from an address."""
    loaded = builder.load(pointer(builder, address, kind))
    loaded.align = alignment
    return loaded


def store_value(builder: Builder, value: ir.Value, address: ir.Value, alignment: int) -> ir.Value:
    """Write a value to an address; gives what stands for None in a kernel."""
    builder.store(value, pointer(builder, address, value.type)).align = alignment
    return cgutils.get_null_value(ir.IntType(8).as_pointer())


def call_llvm(builder: Builder, name: str, result: ir.Type, *values: ir.Value) -> ir.Value:
    """Call an LLVM intrinsic."""
    function = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(result, [value.type for value in values]), name
    )
    return builder.call(function, values)


def fused(builder: Builder, a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
    """The product a * b plus c, rounded once."""
    return call_llvm(builder, "llvm.fma.v16f32", FLOATS, a, b, c)


def spread(builder: Builder, scalar: ir.Value, kind: ir.VectorType = FLOATS) -> ir.Value:
    """A scalar in every lane."""
    first = builder.insert_element(ir.Constant(kind, ir.Undefined), scalar, I32(0))
    return builder.shuffle_vector(first, first, ir.Constant(INTS, [0] * LANES))


def first_mask(builder: Builder, count: ir.Value) -> ir.Value:
    """A mask of the lanes before `count`, compared as 64-bit numbers: a negative or large count is none or all."""
    counts = spread(builder, count, ir.VectorType(I64, LANES))
    return builder.icmp_signed("<", ir.Constant(ir.VectorType(I64, LANES), list(range(LANES))), counts)


def widened(builder: Builder, shorts: ir.Value) -> ir.Value:
    """bfloat16 bits to float32."""
    return builder.bitcast(builder.shl(builder.zext(shorts, INTS), integers(16)), FLOATS)


def rounded_bits(builder: Builder, vector: ir.Value) -> ir.Value:
    """float32 to bfloat16 bits, to nearest, ties to even; NaN stays NaN."""
    bits = builder.bitcast(vector, INTS)
    odd = builder.and_(builder.lshr(bits, integers(16)), integers(1))
    rounded = builder.add(bits, builder.add(odd, integers(0x7FFF)))
    not_a_number = builder.fcmp_unordered("uno", vector, vector)
    chosen = builder.select(not_a_number, integers(0x7FC0 << 16), rounded)
    return builder.trunc(builder.lshr(chosen, integers(16)), SHORTS)


def constant(value: float) -> ir.Value:
    """A float32 constant in every lane."""
    return ir.Constant(FLOATS, [value] * LANES)


def integers(value: int) -> ir.Value:
    """An int32 constant in every lane."""
    return ir.Constant(INTS, [value] * LANES)
