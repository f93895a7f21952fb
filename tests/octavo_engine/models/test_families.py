"""Every family of decoders against transformers in float32, from both file formats, past windows and contexts."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import pytest
import torch

from octavo_engine.inspection import inspect
from octavo_engine.models.specification.architecture import ARCHITECTURES
from ragged import batch, stale_pages
from tiny_decoder import decoder_of
from tiny_families import FAMILIES, VOCABULARY, reference, rounded, tiny_model, write_gguf

Kind = gguf.GGMLQuantizationType
IN_GGUF = [name for name, family in FAMILIES.items() if family.architecture]
# Beyond three windows, the original contexts of stretched rotations, and the stated context of the dynamic one.
TOKENS = np.random.default_rng(0).integers(1, VOCABULARY, 90).tolist()
PAGES = [9, 3, 17, 30, 2, 11]


def check(path: Path, expected: torch.Tensor, *, max_context: int | None = None) -> None:
    """All positions at once, and in chunks that cross pages and windows."""
    decoder = decoder_of(path, weights="float32", max_context=max_context)
    whole = decoder.forward(batch([(TOKENS, 0, PAGES)], every=True), stale_pages(decoder))
    assert_close(whole, expected)
    pages = stale_pages(decoder)
    for start in range(0, len(TOKENS), 23):
        stop = min(len(TOKENS), start + 23)
        part = decoder.forward(batch([(TOKENS[:stop], start, PAGES)], every=True), pages)
        assert_close(part, expected[start:stop])


def assert_close(ours: torch.Tensor, theirs: torch.Tensor) -> None:
    """max|a - b| <= 1e-4 max|b| at every position."""
    wrong = (ours - theirs).abs().amax(-1) / theirs.abs().amax(-1)
    assert wrong.max() <= 1e-4, f"{wrong.max():.2e} at position {int(wrong.argmax())}"


def test_every_architecture_has_a_family_here() -> None:
    covered = {family.config.model_type for family in FAMILIES.values()}
    for architecture in ARCHITECTURES:
        assert covered & set(architecture.model_types), architecture.name


@pytest.mark.parametrize("name", FAMILIES)
def test_logits_from_safetensors_equal_those_of_transformers(tmp_path: Path, name: str) -> None:
    model = tiny_model(name)
    model.save_pretrained(tmp_path)
    assert inspect(tmp_path).supported, inspect(tmp_path).reason
    # A stretched rotation is chosen once for an engine: this one serves what is asked here.
    dynamic = FAMILIES[name].changes.get("max_position_embeddings")
    check(tmp_path, reference(model, TOKENS), max_context=len(TOKENS) if dynamic else None)


@pytest.mark.parametrize("kind", [Kind.F32, Kind.Q8_0], ids=lambda kind: kind.name)
@pytest.mark.parametrize("name", IN_GGUF)
def test_logits_from_gguf_equal_those_of_the_stored_values(tmp_path: Path, name: str, kind: Kind) -> None:
    model = tiny_model(name)
    write_gguf(model, name, tmp_path / "tiny.gguf", kind=kind)
    assert inspect(tmp_path / "tiny.gguf").supported, inspect(tmp_path / "tiny.gguf").reason
    check(tmp_path / "tiny.gguf", reference(rounded(model, name, kind), TOKENS))


def test_short_contexts_use_the_short_factors_of_longrope(tmp_path: Path) -> None:
    model = tiny_model("phi3-longrope")
    model.save_pretrained(tmp_path)
    tokens = TOKENS[:40]
    decoder = decoder_of(tmp_path, weights="float32", max_context=48)
    ours = decoder.forward(batch([(tokens, 0, PAGES)], every=True), stale_pages(decoder))
    assert_close(ours, reference(model, tokens))
