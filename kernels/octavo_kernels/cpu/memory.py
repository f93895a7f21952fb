"""Loads and stores of kernels. Addresses are integers and need no alignment; arguments are called a, b, c in order."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types

from octavo_kernels.cpu.vector import (
    BYTES,
    F32,
    FLOATS,
    I16,
    I32,
    I64,
    INTS,
    LANES,
    SHORTS,
    VECTOR,
    Builder,
    Emit,
    call_llvm,
    first_mask,
    integers,
    load_value,
    operation,
    pointer,
    rounded_bits,
    spread,
    store_value,
    widened,
)


def _masked_load(builder: Builder, address: ir.Value, count: ir.Value, kind: ir.VectorType, suffix: str) -> ir.Value:
    alignment = I32(kind.element.width // 8 if isinstance(kind.element, ir.IntType) else 4)
    place = pointer(builder, address, kind)
    zeros = ir.Constant(kind, None)
    name = f"llvm.masked.load.v16{suffix}.p0"
    return call_llvm(builder, name, kind, place, alignment, first_mask(builder, count), zeros)


def _masked_store(builder: Builder, value: ir.Value, address: ir.Value, count: ir.Value, suffix: str) -> ir.Value:
    alignment = I32(2 if suffix == "i16" else 4)
    place = pointer(builder, address, value.type)
    name = f"llvm.masked.store.v16{suffix}.p0"
    return call_llvm(builder, name, ir.VoidType(), value, place, alignment, first_mask(builder, count))


@operation(VECTOR, types.intp)
def load(builder: Builder, values: Any) -> ir.Value:
    """16 float32 at address a."""
    return load_value(builder, values[0], FLOATS, 4)


@operation(VECTOR, types.intp)
def load_bfloat16(builder: Builder, values: Any) -> ir.Value:
    """16 bfloat16 at address a, widened."""
    return widened(builder, load_value(builder, values[0], SHORTS, 2))


@operation(VECTOR, types.intp)
def load_int8(builder: Builder, values: Any) -> ir.Value:
    """16 signed bytes at address a, as numbers."""
    return builder.sitofp(builder.sext(load_value(builder, values[0], BYTES, 1), INTS), FLOATS)


def _nibbles(builder: Builder, integers_: ir.Value) -> ir.Value:
    return builder.sitofp(builder.sub(integers_, integers(8)), FLOATS)


@operation(VECTOR, types.intp)
def load_low_nibbles(builder: Builder, values: Any) -> ir.Value:
    """The low halves of 16 bytes at address a, less 8, as numbers."""
    wide = builder.zext(load_value(builder, values[0], BYTES, 1), INTS)
    return _nibbles(builder, builder.and_(wide, integers(15)))


@operation(VECTOR, types.intp)
def load_high_nibbles(builder: Builder, values: Any) -> ir.Value:
    """The high halves of 16 bytes at address a, less 8, as numbers."""
    wide = builder.zext(load_value(builder, values[0], BYTES, 1), INTS)
    return _nibbles(builder, builder.lshr(wide, integers(4)))


@operation(VECTOR, types.intp, types.intp)
def load_first(builder: Builder, values: Any) -> ir.Value:
    """The first b float32 at address a, then zeros; nothing behind them is read."""
    return _masked_load(builder, values[0], values[1], FLOATS, "f32")


@operation(VECTOR, types.intp, types.intp)
def load_first_bfloat16(builder: Builder, values: Any) -> ir.Value:
    """The first b bfloat16 at address a, widened, then zeros; nothing behind them is read."""
    return widened(builder, _masked_load(builder, values[0], values[1], SHORTS, "i16"))


@operation(types.void, types.intp, VECTOR)
def store(builder: Builder, values: Any) -> ir.Value:
    """Write the vector b as 16 float32 to address a."""
    return store_value(builder, values[1], values[0], 4)


@operation(types.void, types.intp, VECTOR)
def store_bfloat16(builder: Builder, values: Any) -> ir.Value:
    """Write the vector b as 16 bfloat16 to address a."""
    return store_value(builder, rounded_bits(builder, values[1]), values[0], 2)


@operation(types.void, types.intp, VECTOR)
def store_finite_bfloat16(builder: Builder, values: Any) -> ir.Value:
    """Write the vector b, which holds no NaN, as 16 bfloat16 to address a."""
    bits = builder.bitcast(values[1], INTS)
    odd = builder.and_(builder.lshr(bits, integers(16)), integers(1))
    rounded = builder.add(bits, builder.add(odd, integers(0x7FFF)))
    return store_value(builder, builder.trunc(builder.lshr(rounded, integers(16)), SHORTS), values[0], 2)


@operation(types.void, types.intp, VECTOR, types.intp)
def store_first(builder: Builder, values: Any) -> ir.Value:
    """Write the first c lanes of b as float32 to address a; nothing behind them is written."""
    return _masked_store(builder, values[1], values[0], values[2], "f32")


@operation(types.void, types.intp, VECTOR, types.intp)
def store_first_bfloat16(builder: Builder, values: Any) -> ir.Value:
    """Write the first c lanes of b as bfloat16 to address a; nothing behind them is written."""
    return _masked_store(builder, rounded_bits(builder, values[1]), values[0], values[2], "i16")


@operation(types.float32, types.intp)
def scalar(builder: Builder, values: Any) -> ir.Value:
    """The float32 at address a."""
    return load_value(builder, values[0], F32, 4)


@operation(types.float32, types.intp)
def scalar_bfloat16(builder: Builder, values: Any) -> ir.Value:
    """The bfloat16 at address a, widened."""
    bits = builder.zext(load_value(builder, values[0], I16, 2), I32)
    return builder.bitcast(builder.shl(bits, I32(16)), F32)


@operation(types.int32, types.intp)
def integer(builder: Builder, values: Any) -> ir.Value:
    """The int32 at address a."""
    return load_value(builder, values[0], I32, 4)


@operation(types.int64, types.intp)
def long(builder: Builder, values: Any) -> ir.Value:
    """The int64 at address a."""
    return load_value(builder, values[0], I64, 8)


@operation(types.float64, types.intp)
def double(builder: Builder, values: Any) -> ir.Value:
    """The float64 at address a."""
    return load_value(builder, values[0], ir.DoubleType(), 8)


@operation(types.void, types.intp, types.float32)
def put(builder: Builder, values: Any) -> ir.Value:
    """Write the float32 b to address a."""
    return store_value(builder, values[1], values[0], 4)


@operation(types.void, types.intp, types.float32)
def put_bfloat16(builder: Builder, values: Any) -> ir.Value:
    """Write the float32 b, rounded to bfloat16, to address a."""
    bits = builder.extract_element(rounded_bits(builder, spread(builder, values[1])), I32(0))
    return store_value(builder, bits, values[0], 2)


@operation(types.void, types.intp, types.int64)
def put_long(builder: Builder, values: Any) -> ir.Value:
    """Write the int64 b to address a."""
    return store_value(builder, values[1], values[0], 8)


@operation(types.int64, types.intp)
def take_number(builder: Builder, values: Any) -> ir.Value:
    """The int64 at address a, which grows by one; threads may take numbers at the same time."""
    return builder.atomic_rmw("add", pointer(builder, values[0], I64), I64(1), "monotonic")


def _transpose(builder: Builder, rows: list[ir.Value]) -> list[ir.Value]:
    """Transpose 16 vectors by swapping ever smaller blocks between pairs of them."""
    step = LANES // 2
    while step:
        lower = [lane if not lane & step else LANES + lane - step for lane in range(LANES)]
        upper = [lane + step if not lane & step else LANES + lane for lane in range(LANES)]
        swapped = list(rows)
        for index in (index for index in range(LANES) if not index & step):
            a, b = rows[index], rows[index + step]
            swapped[index] = builder.shuffle_vector(a, b, ir.Constant(INTS, lower))
            swapped[index + step] = builder.shuffle_vector(a, b, ir.Constant(INTS, upper))
        rows = swapped
        step //= 2
    return rows


def _transposed(builder: Builder, values: Any, read: Emit) -> ir.Value:
    source, stride, target = values
    rows = [read(builder, [builder.add(source, builder.mul(stride, I64(row)))]) for row in range(LANES)]
    for row, vector in enumerate(_transpose(builder, rows)):
        store_value(builder, vector, builder.add(target, I64(row * LANES * 4)), 4)
    return cgutils.get_null_value(ir.IntType(8).as_pointer())


def _read(builder: Builder, values: Any) -> ir.Value:
    return load_value(builder, values[0], FLOATS, 4)


def _read_bfloat16(builder: Builder, values: Any) -> ir.Value:
    return widened(builder, load_value(builder, values[0], SHORTS, 2))


@operation(types.void, types.intp, types.intp, types.intp)
def transpose(builder: Builder, values: Any) -> ir.Value:
    """Write the 16 x 16 float32 matrix at address a, its rows b bytes apart, transposed and dense to address c."""
    return _transposed(builder, values, _read)


@operation(types.void, types.intp, types.intp, types.intp)
def transpose_bfloat16(builder: Builder, values: Any) -> ir.Value:
    """Write the 16 x 16 bfloat16 matrix at address a, its rows b bytes apart, transposed to dense float32 at c."""
    return _transposed(builder, values, _read_bfloat16)


@operation(types.int32, types.intp)
def call_integer(builder: Builder, values: Any) -> ir.Value:
    """What the C function at address a returns: `int function(void)`."""
    kind = ir.FunctionType(I32, [])
    return builder.call(builder.inttoptr(values[0], kind.as_pointer()), [])
