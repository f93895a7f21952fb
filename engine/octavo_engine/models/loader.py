"""Loads a decoder from a GGUF file into the layouts that it will compute with."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Literal

import torch

from octavo_engine.errors import LoadCancelled, ModelLoadError
from octavo_engine.models.decoder import Decoder
from octavo_engine.models.decoder_weights import DecoderWeights, LayerWeights
from octavo_engine.models.dequantize import dequantize, four_bit_groups
from octavo_engine.models.gguf_header import GgufHeader, TensorInfo, read_header
from octavo_engine.models.rotary import rotary_tables
from octavo_engine.models.specification import ModelSpec, read_specification
from octavo_kernels.weights import BFloat16Linear, ByRows, Float32Linear, Int4Linear, Linear

Weights = Literal["auto", "bfloat16", "float32", "int4"]
Progress = Callable[[str, int, int], bool | None]

# Rows from which the bfloat16 product is faster than the 4-bit one; see docs/benchmarks/kernels-cpu.md.
CROSSING = 8


def load_decoder(
    source: str | os.PathLike[str] | GgufHeader,
    *,
    weights: Weights = "auto",
    batch_invariant: bool = False,
    progress: Progress | None = None,
) -> Decoder:
    """Load a model.

    Args:
        source: a path, or the header that `read_header` made from one.
        weights: the layout of the matrices. "auto": 4 bits for few rows where the file has them, bfloat16 otherwise.
        batch_invariant: use one layout for every number of rows, so that a row's result never depends on the others.
        progress: called with ("weights", bytes done, bytes in all); returning False cancels.

    Raises:
        ModelLoadError: the file is damaged, or holds what Octavo does not run.
        LoadCancelled: `progress` returned False.
    """
    header = source if isinstance(source, GgufHeader) else read_header(source)
    spec = read_specification(header)
    return Decoder(spec, _Loader(header, spec, _layout(weights, batch_invariant), progress).load())


def _layout(weights: Weights, batch_invariant: bool) -> Weights:
    return "bfloat16" if weights == "auto" and batch_invariant else weights


class _Loader:
    """Reads tensors one after another and counts their bytes."""

    def __init__(self, header: GgufHeader, spec: ModelSpec, layout: Weights, progress: Progress | None) -> None:
        if header.path is None:
            raise ModelLoadError("A model can be loaded from a file on disk only. Save it first.")
        self._header = header
        self._spec = spec
        self._layout = layout
        self._progress = progress
        self._done = 0
        self._total = sum(tensor.nbytes for tensor in header.tensors.values())
        self._dtype = torch.float32 if layout == "float32" else torch.bfloat16
        # A private mapping: nothing is read before it is used, and nothing is written to the file.
        self._bytes = torch.from_file(str(header.path), shared=False, size=header.file_bytes, dtype=torch.uint8)

    def load(self) -> DecoderWeights:
        """All weights of the model."""
        self._report(0)
        spec = self._spec
        embedding = self._matrix("token_embd.weight").to(self._dtype)
        head = self._dense(embedding if spec.tied_head else self._matrix("output.weight").to(self._dtype))
        cos, sin = rotary_tables(spec, self._vector("rope_freqs.weight") if spec.rope_factors else None)
        return DecoderWeights(
            embedding=embedding,
            layers=tuple(self._layer(f"blk.{index}.") for index in range(spec.layers)),
            final_norm=self._vector("output_norm.weight"),
            head=head,
            cos=cos,
            sin=sin,
        )

    def _layer(self, prefix: str) -> LayerWeights:
        return LayerWeights(
            attention_norm=self._vector(f"{prefix}attn_norm.weight"),
            qkv=self._linear([f"{prefix}attn_{part}.weight" for part in "qkv"]),
            output=self._linear([f"{prefix}attn_output.weight"]),
            feed_forward_norm=self._vector(f"{prefix}ffn_norm.weight"),
            gate_up=self._linear([f"{prefix}ffn_{part}.weight" for part in ("gate", "up")]),
            down=self._linear([f"{prefix}ffn_down.weight"]),
        )

    def _linear(self, names: Sequence[str]) -> Linear:
        """The matrices of `names`, one below the other, in the wanted layout."""
        tensors = [self._header.tensors[name] for name in names]
        few = self._int4(tensors) if self._layout in ("auto", "int4") else None
        if few is not None and self._layout == "int4":
            self._count(tensors)
            return few
        rows = sum(tensor.shape[0] for tensor in tensors)
        fused = torch.empty(rows, tensors[0].shape[1], dtype=self._dtype)
        for part, tensor in zip(torch.split(fused, [t.shape[0] for t in tensors]), tensors, strict=True):
            part.copy_(self._read(tensor))
        self._count(tensors)
        many = self._dense(fused)
        return many if few is None else ByRows(few, many, crossing=CROSSING)

    def _int4(self, tensors: Sequence[TensorInfo]) -> Int4Linear | None:
        """The 4-bit layout, if all parts are stored in 4 bits and their shape fits."""
        if not Int4Linear.fits(sum(tensor.shape[0] for tensor in tensors), tensors[0].shape[1]):
            return None
        parts = [four_bit_groups(self._raw(tensor), tensor.type, tensor.shape) for tensor in tensors]
        groups = [part for part in parts if part is not None]
        if len(groups) < len(parts):
            return None
        return Int4Linear(
            torch.cat([part.quants for part in groups]),
            scales=torch.cat([part.scales for part in groups]),
            zeros=torch.cat([part.zeros for part in groups]),
        )

    def _dense(self, weight: torch.Tensor) -> Linear:
        return Float32Linear(weight) if self._layout == "float32" else BFloat16Linear(weight)

    def _matrix(self, name: str) -> torch.Tensor:
        tensor = self._header.tensors[name]
        values = self._read(tensor)
        self._count([tensor])
        return values

    def _vector(self, name: str) -> torch.Tensor:
        # A copy: the mapping of the file is given back after loading.
        return self._matrix(name).clone()

    def _read(self, tensor: TensorInfo) -> torch.Tensor:
        return dequantize(self._raw(tensor), tensor.type, tensor.shape)

    def _raw(self, tensor: TensorInfo) -> torch.Tensor:
        return self._bytes[tensor.offset : tensor.offset + tensor.nbytes]

    def _count(self, tensors: Sequence[TensorInfo]) -> None:
        self._report(sum(tensor.nbytes for tensor in tensors))

    def _report(self, nbytes: int) -> None:
        self._done += nbytes
        if self._progress is not None and self._progress("weights", self._done, self._total) is False:
            raise LoadCancelled(
                f"Loading was cancelled after {self._done:,} of {self._total:,} bytes.",
                needed=self._total,
                available=self._done,
            )
