"""Runs steps on a model: builds the ragged batch, calls the decoder, draws the next tokens. Owns the KV pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from octavo_engine.kv_pages import KvPages
from octavo_engine.memory import trim_memory
from octavo_engine.models.forward_batch import ForwardBatch
from octavo_engine.models.language_model import LanguageModel
from octavo_engine.page_move import PageMove
from octavo_engine.random_numbers import uniform
from octavo_engine.runner import Drawn
from octavo_engine.sampler import Draw, sample
from octavo_engine.scheduler import Row


class ModelRunner:
    """A decoder with its KV pages."""

    # Prompt chunks beyond this size do not compute faster on a processor and make everybody else wait longer.
    step_tokens = 512

    def __init__(
        self, decoder: LanguageModel, pages: KvPages, *, page_size: int, backend: str, vocabulary: int | None = None
    ) -> None:
        """Run `decoder` on `pages`; only the first `vocabulary` tokens are drawn: others mean nothing."""
        self._vocabulary = vocabulary
        self.backend = backend
        self._decoder = decoder
        self._pages = pages
        self.weight_bytes = decoder.weight_bytes
        self.page_bytes = decoder.kv_bytes_per_token * page_size

    def run(self, rows: Sequence[Row], moves: Sequence[PageMove]) -> list[Drawn]:
        """Move pages, in order; then compute all positions of `rows` and draw a token for each row that samples."""
        self._pages.move(moves)
        if not rows:
            return []
        sampling = [row for row in rows if row.samples]
        logits = self._decoder.forward(_batch(rows), self._pages.device)[:, : self._vocabulary]
        tokens = iter(sample(logits, [_draw(row) for row in sampling]))
        return [next(tokens) if row.samples else None for row in rows]

    def resize(self, device: int, host: int, device_places: Mapping[int, int], host_places: Mapping[int, int]) -> None:
        """Make pools of so many pages."""
        self._pages.resize(device, host, device_places, host_places)
        trim_memory()

    def read_page(self, page: int, on_host: bool) -> bytes:
        """The keys and values of a page."""
        return self._pages.read(page, on_host=on_host)

    def close(self) -> None:
        """Give pages and weights back."""
        self._pages.close()
        del self._decoder
        trim_memory()


def _draw(row: Row) -> Draw:
    sequence, sampling = row.sequence, row.sequence.sampling
    number = uniform(sequence.seed, sequence.stream, sequence.output_length)
    return Draw(sampling.temperature, sampling.top_k, sampling.top_p, number)


def _batch(rows: Sequence[Row]) -> ForwardBatch:
    """The rows as one ragged batch."""
    counts = [row.stop - row.start for row in rows]
    starts = np.zeros(len(rows) + 1, np.int32)
    np.cumsum(counts, out=starts[1:])
    table = np.zeros((len(rows), max(len(row.sequence.table.pages) for row in rows)), np.int32)
    for index, row in enumerate(rows):
        pages = row.sequence.table.pages
        table[index, : len(pages)] = pages
    return ForwardBatch(
        token_ids=np.concatenate([np.asarray(row.sequence.tokens[row.start : row.stop], np.int32) for row in rows]),
        positions=np.concatenate([np.arange(row.start, row.stop, dtype=np.int32) for row in rows]),
        slots=np.concatenate([np.asarray(row.sequence.table.slots(row.start, row.stop), np.int64) for row in rows]),
        query_starts=starts,
        context_lengths=np.asarray([row.stop for row in rows], np.int32),
        page_table=table,
        logit_rows=np.asarray([starts[i + 1] - 1 for i, row in enumerate(rows) if row.samples], np.int32),
    )
