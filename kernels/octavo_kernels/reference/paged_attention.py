"""Reference of `paged_attention`: gathers each sequence's pages and computes a plain softmax."""

from __future__ import annotations

import torch


def declines(_device: str) -> str | None:
    """Runs everywhere."""
    return None


def paged_attention(
    q: torch.Tensor,
    kv_layer: torch.Tensor,
    *,
    page_table: torch.Tensor,
    query_starts: torch.Tensor,
    context_lengths: torch.Tensor,
    scale: float,
    out: torch.Tensor,
    window: int,
    softcap: float,
) -> None:
    """See `octavo_kernels.operations.paged_attention`."""
    _, _, kv_heads, page_size, head_dim = kv_layer.shape
    group = q.shape[1] // kv_heads
    starts = query_starts.tolist()
    for sequence, context in enumerate(context_lengths.tolist()):
        start, stop = starts[sequence], starts[sequence + 1]
        pages = page_table[sequence, : -(-context // page_size)].long()
        # Gathered: keys and values, KV head, position, dimension.
        gathered = kv_layer[:, pages].transpose(1, 2).reshape(2, kv_heads, -1, head_dim)[:, :, :context].float()
        keys, values = gathered.repeat_interleave(group, dim=1)
        scores = torch.einsum("thd,hcd->htc", q[start:stop].float(), keys) * scale
        if softcap:
            scores = softcap * torch.tanh(scores / softcap)
        rows = torch.arange(context - (stop - start), context, device=q.device)[:, None]
        columns = torch.arange(context, device=q.device)[None, :]
        hidden = columns > rows
        if window:
            hidden |= columns <= rows - window
        scores.masked_fill_(hidden, float("-inf"))
        out[start:stop] = torch.einsum("htc,hcd->thd", scores.softmax(dim=-1), values).to(out.dtype)
