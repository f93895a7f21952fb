"""The storage formats of tensors: numbers, names, block sizes, as ggml defines them for GGUF files. Loads no torch."""

from __future__ import annotations

from enum import IntEnum


class TensorType(IntEnum):
    """How a tensor's values are stored. Rows consist of blocks of `block_length` values in `block_bytes` bytes."""

    F32 = 0
    F16 = 1
    Q4_0 = 2
    Q4_1 = 3
    Q5_0 = 6
    Q5_1 = 7
    Q8_0 = 8
    Q8_1 = 9
    Q2_K = 10
    Q3_K = 11
    Q4_K = 12
    Q5_K = 13
    Q6_K = 14
    Q8_K = 15
    IQ2_XXS = 16
    IQ2_XS = 17
    IQ3_XXS = 18
    IQ1_S = 19
    IQ4_NL = 20
    IQ3_S = 21
    IQ2_S = 22
    IQ4_XS = 23
    I8 = 24
    I16 = 25
    I32 = 26
    I64 = 27
    F64 = 28
    IQ1_M = 29
    BF16 = 30
    TQ1_0 = 34
    TQ2_0 = 35
    MXFP4 = 39
    # In safetensors files only; ggml has no number for these.
    F8_E4M3 = 1001
    U8 = 1002

    @property
    def block_length(self) -> int:
        """Values in a block."""
        return _BLOCKS[self][0]

    @property
    def block_bytes(self) -> int:
        """Bytes of a block."""
        return _BLOCKS[self][1]


_BLOCKS: dict[TensorType, tuple[int, int]] = {
    TensorType.F32: (1, 4),
    TensorType.F16: (1, 2),
    TensorType.Q4_0: (32, 18),
    TensorType.Q4_1: (32, 20),
    TensorType.Q5_0: (32, 22),
    TensorType.Q5_1: (32, 24),
    TensorType.Q8_0: (32, 34),
    TensorType.Q8_1: (32, 40),
    TensorType.Q2_K: (256, 84),
    TensorType.Q3_K: (256, 110),
    TensorType.Q4_K: (256, 144),
    TensorType.Q5_K: (256, 176),
    TensorType.Q6_K: (256, 210),
    TensorType.Q8_K: (256, 292),
    TensorType.IQ2_XXS: (256, 66),
    TensorType.IQ2_XS: (256, 74),
    TensorType.IQ3_XXS: (256, 98),
    TensorType.IQ1_S: (256, 50),
    TensorType.IQ4_NL: (32, 18),
    TensorType.IQ3_S: (256, 110),
    TensorType.IQ2_S: (256, 82),
    TensorType.IQ4_XS: (256, 136),
    TensorType.I8: (1, 1),
    TensorType.I16: (1, 2),
    TensorType.I32: (1, 4),
    TensorType.I64: (1, 8),
    TensorType.F64: (1, 8),
    TensorType.IQ1_M: (256, 56),
    TensorType.BF16: (1, 2),
    TensorType.TQ1_0: (256, 54),
    TensorType.TQ2_0: (256, 66),
    TensorType.MXFP4: (32, 17),
    TensorType.F8_E4M3: (1, 1),
    TensorType.U8: (1, 1),
}

# The numbers that a GGUF file may state.
IN_GGUF = frozenset(int(kind) for kind in TensorType if kind < TensorType.F8_E4M3)

# The formats that Octavo computes with, each read by `dequantize`.
READABLE = frozenset(
    {
        TensorType.F32,
        TensorType.F16,
        TensorType.BF16,
        TensorType.Q4_0,
        TensorType.Q4_1,
        TensorType.Q5_0,
        TensorType.Q5_1,
        TensorType.Q8_0,
        TensorType.Q2_K,
        TensorType.Q3_K,
        TensorType.Q4_K,
        TensorType.Q5_K,
        TensorType.Q6_K,
        TensorType.IQ4_NL,
        TensorType.IQ4_XS,
        TensorType.MXFP4,
    }
)
