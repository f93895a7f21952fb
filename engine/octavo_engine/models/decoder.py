"""A decoder: logits of a ragged batch over KV pages. Knows no sequences, no sampling and no files."""

from __future__ import annotations

import numpy as np
import torch

import octavo_kernels as kernels
from octavo_engine.models.decoder_weights import DecoderWeights, LayerWeights
from octavo_engine.models.forward_batch import ForwardBatch
from octavo_engine.models.specification import ModelSpec


class Decoder:
    """Weights and the order of the operations; one thread at a time may call it.

    The residual stream is float32; activations between the products are in the dtype of the weights.

    Attributes:
        kv_dtype: dtype of the KV pages.
        weight_bytes: bytes of all weights.
    """

    def __init__(self, spec: ModelSpec, weights: DecoderWeights) -> None:
        """Hold a loaded model."""
        self._spec = spec
        self._weights = weights
        self.kv_dtype = weights.embedding.dtype
        self.weight_bytes = weights.nbytes
        self.vocab_size = spec.vocab_size
        self.context_length = spec.context_length
        self.layers = spec.layers
        self.kv_heads = spec.kv_heads
        self.head_dim = spec.head_dim

    @property
    def kv_bytes_per_token(self) -> int:
        """Bytes that one position occupies in the KV pages."""
        return 2 * self.layers * self.kv_heads * self.head_dim * self.kv_dtype.itemsize

    def kv_shape(self, pages: int, page_size: int) -> tuple[int, ...]:
        """Shape of the KV pages: [layers, 2, pages, kv_heads, page_size, head_dim]."""
        return (self.layers, 2, pages, self.kv_heads, page_size, self.head_dim)

    def describe_layouts(self) -> tuple[str, ...]:
        """A line for people for each weight layout in use."""
        return self._weights.describe()

    @torch.inference_mode()
    def forward(self, batch: ForwardBatch, kv: torch.Tensor) -> torch.Tensor:
        """Compute a batch; its keys and values go into `kv`.

        Args:
            batch: the new tokens.
            kv: pages in the shape of `kv_shape` and dtype `kv_dtype`, contiguous.

        Returns:
            float32 [len(batch.logit_rows), vocab_size].
        """
        weights = self._weights
        step = _Step(self._spec, weights, batch)
        residual = weights.embedding[torch.from_numpy(batch.token_ids)].float()
        update: torch.Tensor | None = None
        for layer, pages in zip(weights.layers, kv, strict=True):
            update = step.attend(layer, residual, update, pages)
            update = step.feed_forward(layer, residual, update)
        assert update is not None, "a decoder has layers"
        return self._logits(residual, update, batch)

    def _logits(self, residual: torch.Tensor, update: torch.Tensor, batch: ForwardBatch) -> torch.Tensor:
        if not len(batch.logit_rows):
            return torch.empty(0, self.vocab_size)
        rows = torch.from_numpy(batch.logit_rows)
        residual, update = residual[rows], update[rows]
        normed = torch.empty_like(update)
        kernels.rms_norm(residual, update, weight=self._weights.final_norm, epsilon=self._spec.epsilon, out=normed)
        return self._weights.head(normed).float()


class _Step:
    """The buffers and index tensors of one forward pass."""

    def __init__(self, spec: ModelSpec, weights: DecoderWeights, batch: ForwardBatch) -> None:
        dtype = weights.embedding.dtype
        tokens = len(batch.token_ids)
        self._spec = spec
        self._weights = weights
        self._positions = torch.from_numpy(batch.positions)
        self._slots = torch.from_numpy(batch.slots)
        self._query_starts = torch.from_numpy(batch.query_starts)
        self._context_lengths = torch.from_numpy(batch.context_lengths)
        self._page_table = torch.from_numpy(np.ascontiguousarray(batch.page_table))
        self._normed = torch.empty(tokens, spec.hidden, dtype=dtype)
        self._attended = torch.empty(tokens, spec.heads, spec.head_dim, dtype=dtype)
        self._activated = torch.empty(tokens, spec.intermediate, dtype=dtype)
        self._scale: float = spec.head_dim**-0.5

    def attend(
        self, layer: LayerWeights, residual: torch.Tensor, update: torch.Tensor | None, pages: torch.Tensor
    ) -> torch.Tensor:
        """The attention block; returns what it adds to the residual stream, [tokens, hidden]."""
        spec = self._spec
        kernels.rms_norm(residual, update, weight=layer.attention_norm, epsilon=spec.epsilon, out=self._normed)
        heads = layer.qkv(self._normed).view(len(self._normed), -1, spec.head_dim)
        q, k, v = torch.split(heads, [spec.heads, spec.kv_heads, spec.kv_heads], dim=1)
        kernels.rope(
            q,
            k,
            cos=self._weights.cos,
            sin=self._weights.sin,
            positions=self._positions,
            interleaved=spec.architecture.rope_interleaved,
        )
        kernels.write_kv(k, v, kv_layer=pages, slots=self._slots)
        kernels.paged_attention(
            q,
            pages,
            page_table=self._page_table,
            query_starts=self._query_starts,
            context_lengths=self._context_lengths,
            scale=self._scale,
            out=self._attended,
        )
        return layer.output(self._attended.flatten(1))

    def feed_forward(self, layer: LayerWeights, residual: torch.Tensor, update: torch.Tensor) -> torch.Tensor:
        """The feed-forward block; returns what it adds to the residual stream, [tokens, hidden]."""
        kernels.rms_norm(residual, update, weight=layer.feed_forward_norm, epsilon=self._spec.epsilon, out=self._normed)
        kernels.gated_activation(layer.gate_up(self._normed), self._activated)
        return layer.down(self._activated)
