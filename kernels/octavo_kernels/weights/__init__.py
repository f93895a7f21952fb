"""Layouts of weight matrices, each a small class that multiplies rows by its matrix or looks its rows up."""

from octavo_kernels.weights.biased import Biased
from octavo_kernels.weights.dense import BFloat16Linear, Float32Linear
from octavo_kernels.weights.embedding import DenseEmbedding, Embedding, PackedEmbedding
from octavo_kernels.weights.int4 import Int4Linear
from octavo_kernels.weights.int8 import Int8Linear
from octavo_kernels.weights.joined import Joined
from octavo_kernels.weights.layout import Linear

__all__ = [
    "BFloat16Linear",
    "Biased",
    "DenseEmbedding",
    "Embedding",
    "Float32Linear",
    "Int4Linear",
    "Int8Linear",
    "Joined",
    "Linear",
    "PackedEmbedding",
]
