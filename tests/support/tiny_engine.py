"""Engines over small random models: the real engine and the real decoder, with a byte for a token."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from octavo_engine import EngineConfig, GenerationRequest, SamplingParams
from octavo_engine.inspection import inspect
from octavo_engine.kv_pages import KvPages
from octavo_engine.local_engine import LocalEngine
from octavo_engine.model_runner import ModelRunner
from octavo_engine.models.decoder import Decoder
from octavo_engine.models.forward_batch import ForwardBatch
from octavo_engine.page_move import PageMove
from octavo_engine.page_pool import PagePool
from octavo_engine.runner import Drawn
from octavo_engine.scheduler import Row
from octavo_engine.tokenization.byte_tokenizer import ByteTokenizer
from plain_answer import LogitBook


class _HeardDecoder(Decoder):
    """Remembers the logits of its last pass."""

    def __init__(self, decoder: Decoder) -> None:
        super().__init__(decoder._spec, decoder._weights)
        self.heard: torch.Tensor = torch.empty(0)

    def forward(self, batch: ForwardBatch, kv: torch.Tensor) -> torch.Tensor:
        self.heard = super().forward(batch, kv)
        return self.heard


class _HeardRunner(ModelRunner):
    """Enters all logits into a book."""

    def __init__(self, decoder: Decoder, pages: KvPages, book: LogitBook) -> None:
        self._ear = _HeardDecoder(decoder)
        self._book = book
        super().__init__(self._ear, pages, page_size=16, backend="test")

    def run(self, rows: Sequence[Row], moves: Sequence[PageMove]) -> list[Drawn]:
        drawn = super().run(rows, moves)
        sampling = [row for row in rows if row.samples]
        for row, logits in zip(sampling, self._ear.heard if sampling else (), strict=True):
            self._book.note(row.sequence.tokens[: row.stop], logits)
        return drawn


def tiny_engine(
    model: Path,
    decoder: Decoder,
    book: LogitBook,
    *,
    pages: int = 64,
    host_pages: int = 64,
    preemption: str = "auto",
) -> LocalEngine:
    """An engine over a model file that has no tokenizer; prompts are token ids, all logits go into `book`."""
    shapes = (decoder.kv_shape(count, 16) for count in (pages, host_pages))
    tensors = (torch.full(shape, torch.nan, dtype=decoder.kv_dtype) for shape in shapes)
    config = EngineConfig(batch_invariant=True, kv_pages=pages, host_pages=host_pages, preemption=preemption)
    runner = _HeardRunner(decoder, KvPages(*tensors), book)
    return LocalEngine(inspect(model), config, ByteTokenizer(), runner, PagePool(pages, 16))


def ask(tokens: Sequence[int], sampling: SamplingParams) -> GenerationRequest:
    """A request with a prompt of token ids."""
    return GenerationRequest(token_ids=list(tokens), sampling=sampling)
