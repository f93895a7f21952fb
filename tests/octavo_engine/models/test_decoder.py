"""The decoder against transformers' llama in float32, and against itself: batched, chunked, with stale memory."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import gguf
import numpy as np
import pytest
import torch
from transformers import LlamaForCausalLM

from octavo_engine.errors import LoadCancelled
from octavo_engine.models.gguf_header import read_header
from octavo_engine.models.loader import load_decoder
from octavo_engine.tokenization.gguf_tokenizer import GgufTokenizer
from ragged import batch, stale_pages
from tiny_llama import VOCABULARY, tensors, tiny_llama, write

Kind = gguf.GGMLQuantizationType


def reference(model: LlamaForCausalLM, tokens: list[int]) -> torch.Tensor:
    with torch.inference_mode():
        logits: torch.Tensor = model(torch.tensor([tokens])).logits[0]
    return logits


@pytest.mark.parametrize(
    ("heads", "kv_heads", "tied"), [(4, 2, True), (4, 4, False), (8, 1, True)], ids=["gqa", "mha-untied", "mqa"]
)
def test_float32_logits_equal_those_of_transformers(tmp_path: Path, heads: int, kv_heads: int, tied: bool) -> None:
    model = tiny_llama(heads=heads, kv_heads=kv_heads, tied=tied)
    write(model, tmp_path / "tiny.gguf", kind=Kind.F32)
    decoder = load_decoder(tmp_path / "tiny.gguf", weights="float32")
    tokens = np.random.default_rng(0).integers(0, VOCABULARY, 75).tolist()
    ours = decoder.forward(batch([(tokens, 0, [9, 3, 17, 30, 2])], every=True), stale_pages(decoder))
    theirs = reference(model, tokens)
    assert (ours - theirs).abs().amax() <= 1e-4 * theirs.abs().amax()


@pytest.mark.parametrize("kind", [Kind.F16, Kind.BF16, Kind.Q8_0, Kind.Q4_0, Kind.Q4_1], ids=lambda kind: kind.name)
def test_stored_formats_give_the_logits_of_their_values(tmp_path: Path, kind: Kind) -> None:
    model = tiny_llama()
    write(model, tmp_path / "tiny.gguf", kind=kind)
    for name, values in tensors(model).items():
        if values.ndim > 1:
            stored = gguf.quants.dequantize(gguf.quants.quantize(values, kind), kind)
            header = read_header(tmp_path / "tiny.gguf").tensors[name]
            assert header.shape == values.shape
            assert np.abs(stored - values).max() < 0.1
    decoder = load_decoder(tmp_path / "tiny.gguf", weights="float32")
    tokens = list(range(20))
    ours = decoder.forward(batch([(tokens, 0, [1, 0])], every=True), stale_pages(decoder))
    theirs = reference(_stored(model, kind), tokens)
    assert (ours - theirs).abs().amax() <= 1e-4 * theirs.abs().amax()


def _stored(model: LlamaForCausalLM, kind: Kind) -> LlamaForCausalLM:
    """The model with its matrices rounded to `kind`: rounding works along rows, so permuted rows round alike."""
    for name, parameter in model.named_parameters():
        if parameter.dim() > 1 and name != "lm_head.weight":
            values = gguf.quants.dequantize(gguf.quants.quantize(parameter.detach().numpy(), kind), kind)
            parameter.data = torch.from_numpy(values.astype(np.float32).copy())
    return model


def test_batched_and_chunked_logits_are_bit_for_bit_those_of_the_plain_run(starter_model: Path) -> None:
    decoder = load_decoder(starter_model, batch_invariant=True)
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


def test_packed_weights_stay_near_the_exact_ones(starter_model: Path) -> None:
    tokenizer = GgufTokenizer(read_header(starter_model).metadata)
    tokens = tokenizer.encode(Path(__file__).parents[3].joinpath("docs", "architecture.md").read_text())[:600]
    assert len(tokens) == 600
    exact = load_decoder(starter_model, weights="float32")
    expected = exact.forward(batch([(tokens, 0, list(range(38)))], every=True), stale_pages(exact)).log_softmax(-1)
    layouts: tuple[Literal["bfloat16", "int4"], ...] = ("bfloat16", "int4")
    for layout in layouts:
        packed = load_decoder(starter_model, weights=layout)
        got = packed.forward(batch([(tokens, 0, list(range(38)))], every=True), stale_pages(packed)).log_softmax(-1)
        divergence = (expected.exp() * (expected - got)).sum(-1).mean()
        assert divergence < 0.005, f"KL of {layout} is {divergence:.4f}"


def test_loading_can_be_cancelled_and_tells_how_far_it_is(tmp_path: Path) -> None:
    write(tiny_llama(), tmp_path / "tiny.gguf", kind=Kind.F16)
    seen: list[tuple[str, int, int]] = []
    load_decoder(tmp_path / "tiny.gguf", progress=lambda *step: seen.append(step))
    assert seen[0][1] == 0
    assert seen[-1][1] == seen[-1][2]
    with pytest.raises(LoadCancelled):
        load_decoder(tmp_path / "tiny.gguf", progress=lambda _stage, done, _total: done == 0)
