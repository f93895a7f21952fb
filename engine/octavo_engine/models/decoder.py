"""A decoder: logits of a ragged batch over KV pages. Knows no sequences, no sampling and no files."""

from __future__ import annotations

import torch

import octavo_kernels as kernels
from octavo_engine.models.decoder_step import DecoderStep
from octavo_engine.models.forward_batch import ForwardBatch
from octavo_engine.models.specification.model_spec import ModelSpec
from octavo_engine.models.weights.decoder_weights import DecoderWeights


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
        self.kv_dtype = weights.dtype
        self.weight_bytes = weights.nbytes
        self.vocab_size = spec.vocab_size
        self.context_length = spec.context_length
        self.layers = spec.layers
        self.kv_heads = spec.kv_heads
        self.head_dim = spec.head_dim

    @property
    def kv_bytes_per_token(self) -> int:
        """Bytes that one position occupies in the KV pages."""
        return self._spec.kv_values_per_token * self.kv_dtype.itemsize

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
        step = DecoderStep(self._spec, weights, batch)
        residual = weights.embedding(torch.from_numpy(batch.token_ids))
        if self._spec.embedding_scale != 1.0:
            residual *= self._embedding_scale()
        update: torch.Tensor | None = None
        for index, (layer, pages) in enumerate(zip(weights.layers, kv, strict=True)):
            update = step.attend(index, layer, residual, update, pages)
            update = step.feed_forward(layer, residual, update)
        assert update is not None, "a decoder has layers"
        return self._logits(residual, update, batch)

    def _embedding_scale(self) -> float:
        # Gemma was trained with the factor rounded as the embeddings are.
        return torch.tensor(self._spec.embedding_scale, dtype=self.kv_dtype).item()

    def _logits(self, residual: torch.Tensor, update: torch.Tensor, batch: ForwardBatch) -> torch.Tensor:
        if not len(batch.logit_rows):
            return torch.empty(0, self.vocab_size)
        rows = torch.from_numpy(batch.logit_rows)
        residual, update = residual[rows], update[rows]
        normed = torch.empty_like(update)
        kernels.rms_norm(residual, update, weight=self._weights.final_norm, epsilon=self._spec.epsilon, out=normed)
        logits = self._weights.head(normed).float()
        if self._spec.logit_scale != 1.0:
            logits *= self._spec.logit_scale
        if self._spec.logit_cap:
            logits = self._spec.logit_cap * torch.tanh(logits / self._spec.logit_cap)
        return logits
