"""One forward pass of a decoder: its buffers, and what each block of a layer does in which order."""

from __future__ import annotations

import numpy as np
import torch

import octavo_kernels as kernels
from octavo_engine.models.forward_batch import ForwardBatch
from octavo_engine.models.specification.model_spec import ModelSpec
from octavo_engine.models.weights.decoder_weights import DecoderWeights, Experts, FeedForward, LayerWeights


class DecoderStep:
    """The buffers and index tensors of one forward pass.

    A block takes the residual stream and what the block before adds to it; it gives what it adds itself, so that the
    addition happens in the kernel that reads the sum.
    """

    def __init__(self, spec: ModelSpec, weights: DecoderWeights, batch: ForwardBatch) -> None:
        """Prepare a pass over `batch`."""
        dtype = weights.dtype
        tokens = len(batch.token_ids)
        self._spec = spec
        self._activation = spec.architecture.activation
        self._positions = torch.from_numpy(batch.positions)
        self._slots = torch.from_numpy(batch.slots)
        self._query_starts = torch.from_numpy(batch.query_starts)
        self._context_lengths = torch.from_numpy(batch.context_lengths)
        self._page_table = torch.from_numpy(np.ascontiguousarray(batch.page_table))
        self._normed = torch.empty(tokens, spec.hidden, dtype=dtype)
        self._attended = torch.empty(tokens, spec.heads, spec.head_dim, dtype=dtype)
        positions = int(batch.context_lengths.max())
        self._rope = weights.rope.upto(positions)
        self._local_rope = weights.local_rope.upto(positions)

    def attend(
        self, index: int, layer: LayerWeights, residual: torch.Tensor, update: torch.Tensor | None, pages: torch.Tensor
    ) -> torch.Tensor:
        """The attention block of layer `index`; returns what it adds to the residual stream, [tokens, hidden]."""
        spec = self._spec
        self._enter(layer.attention_norm, residual, update)
        qkv = layer.qkv(self._normed)
        self._normalise_heads(layer, qkv)
        heads = qkv.view(len(qkv), -1, spec.head_dim)
        q, k, v = torch.split(heads, [spec.heads, spec.kv_heads, spec.kv_heads], dim=1)
        if spec.rotates[index]:
            cos, sin = self._local_rope if spec.windows[index] else self._rope
            kernels.rope(q, k, cos=cos, sin=sin, positions=self._positions, interleaved=spec.interleaved)
        kernels.write_kv(k, v, kv_layer=pages, slots=self._slots)
        kernels.paged_attention(
            q,
            pages,
            page_table=self._page_table,
            query_starts=self._query_starts,
            context_lengths=self._context_lengths,
            scale=spec.attention_scale,
            out=self._attended,
            window=spec.windows[index],
            softcap=spec.score_cap,
        )
        return self._leave(layer.post_attention_norm, layer.output(self._attended.flatten(1)))

    def feed_forward(self, layer: LayerWeights, residual: torch.Tensor, update: torch.Tensor) -> torch.Tensor:
        """The feed-forward block; returns what it adds to the residual stream, [tokens, hidden]."""
        self._enter(layer.feed_forward_norm, residual, update)
        block = layer.feed_forward
        added = self._gated(block, self._normed) if isinstance(block, FeedForward) else self._chosen(block)
        return self._leave(layer.post_feed_forward_norm, added)

    def _enter(self, norm: torch.Tensor | None, residual: torch.Tensor, update: torch.Tensor | None) -> None:
        """Add `update` to the residual stream, and put what a block reads of it into the buffer."""
        if norm is not None:
            kernels.rms_norm(residual, update, weight=norm, epsilon=self._spec.epsilon, out=self._normed)
            return
        if update is not None:
            residual += update
        self._normed.copy_(residual)

    def _leave(self, norm: torch.Tensor | None, added: torch.Tensor) -> torch.Tensor:
        if norm is not None:
            kernels.head_norm(added.unsqueeze(1), weight=norm, epsilon=self._spec.epsilon)
        return added

    def _normalise_heads(self, layer: LayerWeights, qkv: torch.Tensor) -> None:
        if layer.query_norm is None or layer.key_norm is None:
            return
        spec = self._spec
        q, k, _ = torch.split(qkv, [spec.query_width, spec.kv_width, spec.kv_width], dim=1)
        for part, norm in ((q, layer.query_norm), (k, layer.key_norm)):
            kernels.head_norm(part.view(len(part), -1, len(norm)), weight=norm, epsilon=spec.epsilon)

    def _gated(self, block: FeedForward, rows: torch.Tensor) -> torch.Tensor:
        gate_up = block.gate_up(rows)
        activated = torch.empty(len(rows), gate_up.shape[1] // 2, dtype=gate_up.dtype)
        kernels.gated_activation(gate_up, activated, activation=self._activation)
        return block.down(activated)

    def _chosen(self, block: Experts) -> torch.Tensor:
        """Each token through the experts that its router chose; experts in ascending order, whoever else is there."""
        shares = block.router(self._normed).float().softmax(dim=-1)
        weights, chosen = shares.topk(block.used, dim=-1)
        if block.normalises:
            weights /= weights.sum(dim=-1, keepdim=True)
        total = torch.zeros(self._normed.shape, dtype=torch.float32)
        for expert in sorted(set(chosen.flatten().tolist())):
            rows, places = torch.where(chosen == expert)
            computed = self._gated(block.experts[expert], self._normed[rows])
            total.index_add_(0, rows, computed * weights[rows, places].unsqueeze(1))
        return total.to(self._normed.dtype)
