"""The weights of a decoder in the layouts that it computes with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from octavo_kernels.weights import Linear


@dataclass(frozen=True, slots=True)
class LayerWeights:
    """One layer. Norms are float32 [hidden].

    Attributes:
        qkv: query, key and value rows in one matrix.
        output: back from the heads.
        gate_up: gate rows, then up rows.
        down: back from the feed-forward block.
    """

    attention_norm: torch.Tensor
    qkv: Linear
    output: Linear
    feed_forward_norm: torch.Tensor
    gate_up: Linear
    down: Linear

    def matrices(self) -> tuple[Linear, ...]:
        """All products of the layer."""
        return (self.qkv, self.output, self.gate_up, self.down)


@dataclass(frozen=True, slots=True)
class DecoderWeights:
    """A whole model.

    Attributes:
        embedding: [vocab_size, hidden], bfloat16 or float32.
        layers: from the first to the last.
        final_norm: float32 [hidden].
        head: to the logits.
        cos: float32 [context_length, rope_width / 2].
        sin: likewise.
    """

    embedding: torch.Tensor
    layers: tuple[LayerWeights, ...]
    final_norm: torch.Tensor
    head: Linear
    cos: torch.Tensor
    sin: torch.Tensor

    @property
    def nbytes(self) -> int:
        """Bytes of everything; a tied embedding counts once."""
        tensors = {tensor.data_ptr(): tensor.nbytes for tensor in self._tensors()}
        head = 0 if self._tied() else self.head.nbytes
        return sum(tensors.values()) + head + sum(matrix.nbytes for layer in self.layers for matrix in layer.matrices())

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

    def _tensors(self) -> Iterator[torch.Tensor]:
        yield from (self.embedding, self.final_norm, self.cos, self.sin)
        for layer in self.layers:
            yield from (layer.attention_norm, layer.feed_forward_norm)

    def _tied(self) -> bool:
        weight = getattr(self.head, "weight", None)
        return isinstance(weight, torch.Tensor) and weight.data_ptr() == self.embedding.data_ptr()
