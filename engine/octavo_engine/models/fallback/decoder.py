"""A model that transformers computes, over our KV pages: slower than our own decoder, for architectures beyond it.

Loads transformers. Knows no sequences and no sampling.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch

from octavo_engine.errors import ModelLoadError
from octavo_engine.models.fallback.attention import LayerCall, PagedPass, running
from octavo_engine.models.forward_batch import ForwardBatch


class TransformersDecoder:
    """What `ModelRunner` asks of a decoder, by way of transformers; one thread at a time may call it.

    Attributes:
        kv_dtype: dtype of the KV pages.
        weight_bytes: bytes of all weights.
    """

    def __init__(
        self, model: torch.nn.Module, calls: Mapping[int, LayerCall], *, vocab_size: int, context_length: int
    ) -> None:
        """Hold a loaded model whose layers made these calls.

        Raises:
            ModelLoadError: pages of one shape cannot hold what the layers ask for.
        """
        self._model = model
        parameters = {parameter.data_ptr(): parameter.nbytes for parameter in model.parameters()}
        self.weight_bytes = sum(parameters.values())
        self.kv_dtype = next(model.parameters()).dtype
        self.vocab_size = vocab_size
        self.context_length = context_length
        self.layers = len(calls)
        self._windows = {layer: call.window for layer, call in calls.items()}
        self.kv_heads = max(call.kv_heads for call in calls.values())
        # Kernels take multiples of eight.
        self.head_dim = -(-max(max(call.key_size, call.value_size) for call in calls.values()) // 8) * 8
        for call in calls.values():
            if self.kv_heads % call.kv_heads or call.heads % self.kv_heads:
                raise ModelLoadError(
                    f"Its layers have {call.heads} query heads for {call.kv_heads} key heads, others up to "
                    f"{self.kv_heads}, which does not fit into pages of one shape."
                )

    @property
    def kv_bytes_per_token(self) -> int:
        """Bytes that one position occupies in the KV pages."""
        return 2 * self.layers * self.kv_heads * self.head_dim * self.kv_dtype.itemsize

    def kv_shape(self, pages: int, page_size: int) -> tuple[int, ...]:
        """Shape of the KV pages: [layers, 2, pages, kv_heads, page_size, head_dim]."""
        return (self.layers, 2, pages, self.kv_heads, page_size, self.head_dim)

    def describe_layouts(self) -> tuple[str, ...]:
        """A line for people."""
        kind = str(self.kv_dtype).removeprefix("torch.")
        return (f"all of it: {kind}, {self.weight_bytes / 1e6:.0f} MB, computed by transformers, which is slower",)

    @torch.inference_mode()
    def forward(self, batch: ForwardBatch, kv: torch.Tensor) -> torch.Tensor:
        """Compute a batch; its keys and values go into `kv`.

        Args:
            batch: the new tokens.
            kv: pages in the shape of `kv_shape` and dtype `kv_dtype`, contiguous.

        Returns:
            float32 [len(batch.logit_rows), vocab_size].
        """
        tokens = torch.from_numpy(batch.token_ids).long()[None]
        positions = torch.from_numpy(batch.positions).long()[None]
        rows = torch.from_numpy(batch.logit_rows).long()
        with running(PagedPass(batch, kv, self._windows)):
            # Without rows to draw from, one is computed all the same: an empty choice means all of them.
            kept = rows if len(rows) else torch.zeros(1, dtype=torch.long)
            output = self._model(input_ids=tokens, position_ids=positions, use_cache=False, logits_to_keep=kept)
        logits: torch.Tensor = output.logits[0]
        return logits[: len(rows)].float()
