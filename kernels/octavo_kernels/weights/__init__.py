"""Layouts of weight matrices, each a small class that multiplies rows by its matrix."""

from octavo_kernels.weights.biased import Biased
from octavo_kernels.weights.by_rows import ByRows
from octavo_kernels.weights.dense import BFloat16Linear, Float32Linear
from octavo_kernels.weights.int4 import Int4Linear
from octavo_kernels.weights.layout import Linear

__all__ = ["BFloat16Linear", "Biased", "ByRows", "Float32Linear", "Int4Linear", "Linear"]
