"""The weights of a decoder in the layouts that it computes with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from octavo_engine.models.rotary import RotaryTable
from octavo_kernels.weights import Embedding, Linear


@dataclass(frozen=True, slots=True)
class FeedForward:
    """A gated feed-forward block.

    Attributes:
        gate_up: gate rows, then up rows.
        down: back from the inner width.
    """

    gate_up: Linear
    down: Linear


@dataclass(frozen=True, slots=True)
class Experts:
    """A mixture of experts.

    Attributes:
        router: to a number for each expert.
        experts: the feed-forward blocks to choose from.
        used: how many compute a token.
        normalises: their weights are made to add up to 1.
    """

    router: Linear
    experts: tuple[FeedForward, ...]
    used: int
    normalises: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerWeights:
    """One layer. Norms are float32, and None where the architecture has none.

    Attributes:
        attention_norm, feed_forward_norm: before the blocks, [hidden].
        post_attention_norm, post_feed_forward_norm: of what the blocks add, [hidden].
        query_norm, key_norm: [head_dim], or all heads of a token as one row.
        qkv: query, key and value rows in one matrix.
        output: back from the heads.
    """

    attention_norm: torch.Tensor | None
    query_norm: torch.Tensor | None
    key_norm: torch.Tensor | None
    qkv: Linear
    output: Linear
    post_attention_norm: torch.Tensor | None
    feed_forward_norm: torch.Tensor | None
    feed_forward: FeedForward | Experts
    post_feed_forward_norm: torch.Tensor | None

    def matrices(self) -> tuple[Linear, ...]:
        """All products of the layer."""
        block = self.feed_forward
        if isinstance(block, FeedForward):
            return (self.qkv, self.output, block.gate_up, block.down)
        experts = (matrix for expert in block.experts for matrix in (expert.gate_up, expert.down))
        return (self.qkv, self.output, block.router, *experts)

    def norms(self) -> Iterator[torch.Tensor]:
        """All norms of the layer."""
        norms = (
            self.attention_norm,
            self.query_norm,
            self.key_norm,
            self.post_attention_norm,
            self.feed_forward_norm,
            self.post_feed_forward_norm,
        )
        return (norm for norm in norms if norm is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecoderWeights:
    """A whole model.

    Attributes:
        dtype: of the activations between products, and of the KV pages: bfloat16 or float32.
        embedding: [vocab_size, hidden].
        layers: from the first to the last.
        final_norm: float32 [hidden].
        head: to the logits.
        is_tied: the head is the embedding's table.
        rope: the rotation of layers that see everything.
        local_rope: the rotation of layers with a window.
    """

    dtype: torch.dtype
    embedding: Embedding
    layers: tuple[LayerWeights, ...]
    final_norm: torch.Tensor
    head: Linear
    is_tied: bool
    rope: RotaryTable
    local_rope: RotaryTable

    @property
    def nbytes(self) -> int:
        """Bytes of everything; a tied embedding counts once."""
        tables = {id(table): table.nbytes for table in (self.rope, self.local_rope)}
        head = 0 if self.is_tied else self.head.nbytes
        norms = self.final_norm.nbytes + sum(norm.nbytes for layer in self.layers for norm in layer.norms())
        matrices = sum(matrix.nbytes for layer in self.layers for matrix in layer.matrices())
        return self.embedding.nbytes + head + norms + matrices + sum(tables.values())

    def describe(self) -> tuple[str, ...]:
        """A line for each layout in use, such as "120 matrices: bfloat16, 212 MB"."""
        counts: Counter[str] = Counter()
        sizes: Counter[str] = Counter()
        for matrix in (matrix for layer in self.layers for matrix in layer.matrices()):
            counts[matrix.name] += 1
            sizes[matrix.name] += matrix.nbytes
        lines = [f"{counts[name]} matrices: {name}, {sizes[name] / 1e6:.0f} MB" for name in counts]
        lines.append(f"head: {self.head.name}, {self.head.nbytes / 1e6:.0f} MB")
        return tuple(lines)
