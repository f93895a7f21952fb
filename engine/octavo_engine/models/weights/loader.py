"""Loads a decoder from a checkpoint into the layouts that it will compute with."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

import torch

from octavo_engine.errors import LoadCancelled
from octavo_engine.memory import return_freed_memory, trim_memory
from octavo_engine.models.decoder import Decoder
from octavo_engine.models.files.checkpoint import Checkpoint
from octavo_engine.models.files.stored import Matrix, Packed, Scaled, Stack, TensorInfo
from octavo_engine.models.rotary import RotaryTable
from octavo_engine.models.weights.decoder_weights import DecoderWeights, Experts, FeedForward, LayerWeights
from octavo_engine.models.weights.layout import Layout, Weights, choose_layout, table_layout
from octavo_engine.models.weights.tensor_reader import TensorReader
from octavo_engine.models.weights.weight_groups import WeightGroups, joined, quantize
from octavo_kernels.weights import (
    BFloat16Linear,
    Biased,
    DenseEmbedding,
    Embedding,
    Float32Linear,
    Int4Linear,
    Int8Linear,
    Joined,
    Linear,
    PackedEmbedding,
)

Progress = Callable[[str, int, int], bool | None]

# Bytes that are read before freed memory is returned.
_LEAST_RETURNED = 12 << 20


def load_decoder(
    checkpoint: Checkpoint,
    *,
    weights: Weights = "auto",
    batch_invariant: bool = False,
    max_context: int | None = None,
    progress: Progress | None = None,
) -> Decoder:
    """Load a model.

    Args:
        checkpoint: the model on disk.
        weights: the layout of the matrices; see `choose_layout`.
        batch_invariant: one layout and one way for every number of rows, so that no row's result depends on others.
        max_context: positions that a sequence may have; None for as many as the model states.
        progress: called with ("weights", bytes done, bytes in all); returning False cancels.

    Raises:
        ModelLoadError: the files are damaged.
        LoadCancelled: `progress` returned False.
    """
    if weights == "auto" and batch_invariant:
        weights = "bfloat16"
    loader = _Loader(checkpoint, weights, progress, is_invariant=batch_invariant)
    decoder = Decoder(checkpoint.spec, loader.load(max_context))
    trim_memory()
    return decoder


class _Loader:
    """Reads tensors one after another and counts their bytes."""

    def __init__(
        self, checkpoint: Checkpoint, weights: Weights, progress: Progress | None, *, is_invariant: bool
    ) -> None:
        self._tensors = checkpoint.tensors
        self._spec = checkpoint.spec
        self._norm_offset = checkpoint.norm_offset
        self._weights = weights
        self._is_invariant = is_invariant
        self._progress = progress
        self._done = 0
        self._returned = 0
        self._total = checkpoint.nbytes
        self._dtype = torch.float32 if weights == "float32" else torch.bfloat16
        self._reader = TensorReader(checkpoint.files)

    def load(self, max_context: int | None) -> DecoderWeights:
        """All weights of the model."""
        self._report(0)
        spec = self._spec
        embedding = self._embedding(self._matrix("token_embd.weight"))
        context = min(spec.context_length, max_context or spec.context_length)
        factors = self._vector("rope_freqs.weight") if spec.rope_factors else None
        rope = RotaryTable(spec.rope, context=context, factors=factors)
        return DecoderWeights(
            dtype=self._dtype,
            embedding=embedding,
            layers=tuple(self._layer(index) for index in range(spec.layers)),
            final_norm=self._norm("output_norm.weight"),
            head=embedding.head(one_path=self._is_invariant) if spec.tied_head else self._head(),
            is_tied=spec.tied_head,
            rope=rope,
            local_rope=rope if spec.local_rope is None else RotaryTable(spec.local_rope, context=context),
        )

    def _embedding(self, table: Matrix) -> Embedding:
        if table_layout(self._layout(table)) is Layout.INT8:
            groups = self._groups(table, Layout.INT8, 1.0)
            made = PackedEmbedding(groups.integers, scales=groups.scales, offsets=groups.offsets)
            made.is_rounded = groups.is_rounded
            return made
        return DenseEmbedding(self._fused([table], 1.0))

    def _head(self) -> Linear:
        matrix = self._matrix("output.weight")
        if table_layout(self._layout(matrix)) is Layout.INT8:
            return self._int8(self._groups(matrix, Layout.INT8, 1.0))
        return self._dense(self._fused([matrix], 1.0))

    def _layer(self, index: int) -> LayerWeights:
        prefix = f"blk.{index}."
        return LayerWeights(
            attention_norm=self._optional_norm(f"{prefix}attn_norm.weight"),
            query_norm=self._optional_norm(f"{prefix}attn_q_norm.weight"),
            key_norm=self._optional_norm(f"{prefix}attn_k_norm.weight"),
            qkv=self._linear(self._present(prefix, "attn_qkv", "attn_q", "attn_k", "attn_v")),
            output=self._linear([f"{prefix}attn_output"], scale=self._spec.residual_scale),
            post_attention_norm=self._optional_norm(f"{prefix}post_attention_norm.weight"),
            feed_forward_norm=self._optional_norm(f"{prefix}ffn_norm.weight"),
            feed_forward=self._experts(prefix) if self._spec.has_experts(index) else self._feed_forward(prefix),
            post_feed_forward_norm=self._optional_norm(f"{prefix}post_ffw_norm.weight"),
        )

    def _present(self, prefix: str, *names: str) -> list[str]:
        return [f"{prefix}{name}" for name in names if f"{prefix}{name}.weight" in self._tensors]

    def _feed_forward(self, prefix: str) -> FeedForward:
        return FeedForward(
            self._linear(self._present(prefix, "ffn_gate", "ffn_up")),
            self._linear([f"{prefix}ffn_down"], scale=self._spec.residual_scale),
        )

    def _experts(self, prefix: str) -> Experts:
        spec = self._spec.experts
        assert spec is not None
        gates, ups, downs = (self._tensors[f"{prefix}ffn_{part}_exps.weight"] for part in ("gate", "up", "down"))
        assert not isinstance(gates, Packed | Scaled)
        assert not isinstance(ups, Packed | Scaled)
        assert not isinstance(downs, Packed | Scaled)
        return Experts(
            router=self._dense(self._dense_matrix(f"{prefix}ffn_gate_inp.weight")),
            experts=tuple(
                FeedForward(
                    self._product([gates.part(expert), ups.part(expert)]),
                    self._product([downs.part(expert)], scale=self._spec.residual_scale),
                )
                for expert in range(spec.count)
            ),
            used=spec.used,
            normalises=spec.normalises,
        )

    def _linear(self, names: Sequence[str], *, scale: float = 1.0) -> Linear:
        """The matrices of `names`, one below the other, with their biases; all multiplied by `scale`."""
        product = self._product([self._matrix(f"{name}.weight") for name in names], scale=scale)
        if not any(f"{name}.bias" in self._tensors for name in names):
            return product
        return Biased(product, torch.cat(list(self._bias_parts(names))) * scale)

    def _bias_parts(self, names: Sequence[str]) -> Iterator[torch.Tensor]:
        for name in names:
            known = f"{name}.bias" in self._tensors
            yield self._vector(f"{name}.bias") if known else torch.zeros(self._matrix(f"{name}.weight").shape[0])

    def _product(self, parts: Sequence[Matrix], *, scale: float = 1.0) -> Linear:
        """The matrices one below the other, each in its layout; neighbours that lie alike become one matrix."""
        made: list[Linear] = []
        for layout, group in itertools.groupby(parts, self._layout):
            alike = list(group)
            if layout in (Layout.INT4, Layout.INT8):
                made += self._packed(alike, layout, scale)
            else:
                made.append(self._dense(self._fused(alike, scale)))
        return made[0] if len(made) == 1 else Joined(made)

    def _layout(self, part: Matrix) -> Layout:
        return choose_layout(part.format, part.shape[0], part.shape[1], self._weights)

    def _packed(self, parts: Sequence[Matrix], layout: Layout, scale: float) -> Iterator[Linear]:
        """Matrices in 4 or 8 bits."""
        read = [self._groups(part, layout, scale) for part in parts]
        for _, alike in itertools.groupby(read, lambda groups: (groups.group, groups.offsets is None)):
            groups = joined(list(alike))
            yield self._int4(groups) if layout is Layout.INT4 else self._int8(groups)

    def _groups(self, part: Matrix, layout: Layout, scale: float) -> WeightGroups:
        stored = self._reader.groups(part)
        if stored is None or (layout is Layout.INT4 and stored.bits > 4):
            stored = quantize(self._reader.values(part), 4 if layout is Layout.INT4 else 8)
        self._count([part])
        return stored.times(scale)

    def _int4(self, groups: WeightGroups) -> Int4Linear:
        if groups.offsets is None:
            quants, zeros = groups.integers + 8, torch.zeros_like(groups.scales)
        else:
            quants, zeros = groups.integers, groups.offsets + 8 * groups.scales
        crossing = {"crossing": None} if self._is_invariant else {}
        made = Int4Linear(quants.view(torch.uint8), scales=groups.scales, zeros=zeros, **crossing)
        made.is_rounded = groups.is_rounded
        return made

    def _int8(self, groups: WeightGroups) -> Int8Linear:
        crossing = {"crossing": None} if self._is_invariant else {}
        made = Int8Linear(groups.integers, scales=groups.scales, offsets=groups.offsets, **crossing)
        made.is_rounded = groups.is_rounded
        return made

    def _fused(self, parts: Sequence[Matrix], scale: float) -> torch.Tensor:
        rows = [part.shape[0] for part in parts]
        fused = torch.empty(sum(rows), parts[0].shape[1], dtype=self._dtype)
        for target, part in zip(torch.split(fused, rows), parts, strict=True):
            for start, values in self._reader.pieces(part):
                target[start : start + len(values)] = values if scale == 1.0 else values.float() * scale
            self._count([part])
        return fused

    def _dense(self, weight: torch.Tensor) -> Linear:
        return Float32Linear(weight) if self._weights == "float32" else BFloat16Linear(weight)

    def _dense_matrix(self, name: str) -> torch.Tensor:
        return self._fused([self._matrix(name)], 1.0)

    def _matrix(self, name: str) -> Matrix:
        stored = self._tensors[name]
        assert not isinstance(stored, Stack), "only experts are stacked"
        return stored

    def _norm(self, name: str) -> torch.Tensor:
        return self._vector(name) + self._norm_offset

    def _optional_norm(self, name: str) -> torch.Tensor | None:
        return self._norm(name) if name in self._tensors else None

    def _vector(self, name: str) -> torch.Tensor:
        """A float32 copy: the mapping of the file is given back after loading."""
        stored = self._matrix(name)
        assert isinstance(stored, TensorInfo), "vectors are never packed"
        self._count([stored])
        return self._reader.values(stored).to(torch.float32, copy=True)

    def _count(self, parts: Sequence[Matrix]) -> None:
        self._report(sum(part.nbytes for part in parts))

    def _report(self, nbytes: int) -> None:
        self._done += nbytes
        if self._done - self._returned > max(_LEAST_RETURNED, self._total // 16):
            # What was needed for a moment would pile up to half of the model.
            return_freed_memory()
            self._returned = self._done
        if self._progress is not None and self._progress("weights", self._done, self._total) is False:
            raise LoadCancelled(
                f"Loading was cancelled after {self._done:,} of {self._total:,} bytes.",
                needed=self._total,
                available=self._done,
            )
