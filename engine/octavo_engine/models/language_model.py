"""What a runner needs of whatever computes a model's logits."""

from __future__ import annotations

from typing import Protocol

import torch

from octavo_engine.models.forward_batch import ForwardBatch


class LanguageModel(Protocol):
    """Computes logits of ragged batches over KV pages; one thread at a time.

    Attributes:
        weight_bytes: bytes of all weights.
    """

    weight_bytes: int

    @property
    def kv_bytes_per_token(self) -> int:
        """Bytes that one position occupies in the KV pages."""
        ...

    def forward(self, batch: ForwardBatch, kv: torch.Tensor) -> torch.Tensor:
        """Compute a batch, whose keys and values go into `kv`: float32 [len(batch.logit_rows), vocabulary]."""
        ...
