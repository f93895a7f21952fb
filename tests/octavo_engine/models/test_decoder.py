"""The decoder of the starter model against itself, batched and chunked; what loading tells and leaves."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import pytest
import torch

from octavo_engine.errors import LoadCancelled
from ragged import batch, stale_pages
from tiny_decoder import decoder_of
from tiny_families import tiny_model, write_gguf

Kind = gguf.GGMLQuantizationType


def test_batched_and_chunked_logits_are_bit_for_bit_those_of_the_plain_run(starter_model: Path) -> None:
    decoder = decoder_of(starter_model, batch_invariant=True)
    generator = np.random.default_rng(1)
    first, second = (generator.integers(0, 49_000, count).tolist() for count in (37, 90))
    plain = decoder.forward(batch([(first, 0, [0, 1, 2])]), stale_pages(decoder))[0]
    together = decoder.forward(batch([(second, 0, [9, 8, 7, 6, 5, 4]), (first, 0, [3, 1, 2])]), stale_pages(decoder))[1]
    assert torch.equal(plain, together)
    for chunk in (1, 16, 23):
        pages = stale_pages(decoder)
        for start in range(0, len(first), chunk):
            logits = decoder.forward(batch([(first[: start + chunk], start, [0, 1, 2])]), pages)
        assert torch.equal(plain, logits[0]), f"in chunks of {chunk}"


def test_loading_can_be_cancelled_and_tells_how_far_it_is(tmp_path: Path) -> None:
    write_gguf(tiny_model("llama"), "llama", tmp_path / "tiny.gguf", kind=Kind.F16)
    seen: list[tuple[str, int, int]] = []
    decoder_of(tmp_path / "tiny.gguf", progress=lambda *step: seen.append(step))
    assert seen[0][1] == 0
    assert seen[-1][1] == seen[-1][2]
    with pytest.raises(LoadCancelled):
        decoder_of(tmp_path / "tiny.gguf", progress=lambda _stage, done, _total: done == 0)
