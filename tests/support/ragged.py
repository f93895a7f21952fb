"""Ragged batches for a decoder under test, without a scheduler."""

from __future__ import annotations

import numpy as np
import torch

from octavo_engine.models.decoder import Decoder
from octavo_engine.models.forward_batch import ForwardBatch

Rows = list[tuple[list[int], int, list[int]]]


def batch(rows: Rows, *, every: bool = False) -> ForwardBatch:
    """Rows of (tokens, first new position, pages); logits of the last token of each, or of every new one."""
    counts = [len(tokens) - start for tokens, start, _ in rows]
    starts = np.cumsum([0, *counts]).astype(np.int32)
    table = np.zeros((len(rows), max(len(pages) for *_, pages in rows)), np.int32)
    for index, (*_, pages) in enumerate(rows):
        table[index, : len(pages)] = pages
    return ForwardBatch(
        token_ids=np.concatenate([np.asarray(tokens[start:], np.int32) for tokens, start, _ in rows]),
        positions=np.concatenate([np.arange(start, len(tokens), dtype=np.int32) for tokens, start, _ in rows]),
        slots=np.concatenate(
            [np.asarray([p[i // 16] * 16 + i % 16 for i in range(s, len(t))], np.int64) for t, s, p in rows]
        ),
        query_starts=starts,
        context_lengths=np.asarray([len(tokens) for tokens, *_ in rows], np.int32),
        page_table=table,
        logit_rows=np.arange(starts[-1], dtype=np.int32) if every else (starts[1:] - 1).astype(np.int32),
    )


def stale_pages(decoder: Decoder, pages: int = 40) -> torch.Tensor:
    """Pages that hold nothing that may be read."""
    return torch.full(decoder.kv_shape(pages, 16), torch.nan, dtype=decoder.kv_dtype)
