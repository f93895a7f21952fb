"""Causal attention of new tokens over the KV pages of their sequences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from octavo_kernels.dispatch import Implementation, Operation

if TYPE_CHECKING:
    import torch

_OPERATION = Operation(
    "paged_attention",
    Implementation("numba", "octavo_kernels.cpu.paged_attention"),
    Implementation("torch", "octavo_kernels.reference.paged_attention"),
)


def paged_attention(
    q: torch.Tensor,
    kv_layer: torch.Tensor,
    *,
    page_table: torch.Tensor,
    query_starts: torch.Tensor,
    context_lengths: torch.Tensor,
    scale: float,
    out: torch.Tensor,
    window: int = 0,
    softcap: float = 0.0,
) -> None:
    """Attend from the new tokens of each sequence, prefill chunks and decodes in one ragged call.

    Sequence s owns rows query_starts[s] to query_starts[s + 1] of `q`. With n such rows, row i stands at position
    context_lengths[s] - n + i and sees the positions up to its own,
    or the last `window` of them. Query head h reads KV head h // (heads / kv_heads).
    A row's result depends on nothing but its query and the keys and values that it sees: not on other rows, on their
    number, or on which pages hold the positions.

    Args:
        q: [tokens, heads, head_dim]; rows may lie apart, heads and dimensions are dense. head_dim is a multiple of 8.
        kv_layer: [2, pages, kv_heads, page_size, head_dim] in q's dtype (bfloat16 or float32), contiguous, the new
            tokens already written.
        page_table: int32 [sequences, max_pages], contiguous; entries beyond a sequence's pages are never read.
        query_starts: int32 [sequences + 1], ascending from 0.
        context_lengths: int32 [sequences]: positions of each sequence, the new ones included.
        scale: factor of the scores, usually head_dim ** -0.5.
        out: [tokens, heads, head_dim] in q's dtype, contiguous.
        window: how many positions a row sees, its own included; 0 for all.
        softcap: scores become softcap * tanh(score / softcap) before the softmax; 0 leaves them.
    """
    _OPERATION.on(q.device.type)(
        q,
        kv_layer,
        page_table=page_table,
        query_starts=query_starts,
        context_lengths=context_lengths,
        scale=scale,
        out=out,
        window=window,
        softcap=softcap,
    )
