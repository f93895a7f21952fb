"""Engines over small random models: the real engine and the real decoder, with a byte for a token."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import torch

from octavo_engine import EngineConfig, GenerationRequest, SamplingParams
from octavo_engine.inspection import inspect
from octavo_engine.kv_pages import KvPages
from octavo_engine.local_engine import LocalEngine
from octavo_engine.model_runner import ModelRunner
from octavo_engine.models.loader import load_decoder
from octavo_engine.page_pool import PagePool
from octavo_engine.tokenization.byte_tokenizer import ByteTokenizer


def tiny_engine(
    model: Path,
    *,
    weights: Literal["auto", "bfloat16", "float32", "int4"] = "auto",
    pages: int = 64,
    host_pages: int = 0,
    preemption: str = "auto",
) -> LocalEngine:
    """A batch-invariant engine over a model file that has no tokenizer; prompts are token ids."""
    decoder = load_decoder(model, weights=weights, batch_invariant=True)
    shapes = (decoder.kv_shape(count, 16) for count in (pages, host_pages))
    runner = ModelRunner(
        decoder,
        KvPages(*(torch.full(shape, torch.nan, dtype=decoder.kv_dtype) for shape in shapes)),
        page_size=16,
        backend="test",
    )
    config = EngineConfig(
        batch_invariant=True, weights=weights, kv_pages=pages, host_pages=host_pages, preemption=preemption
    )
    return LocalEngine(inspect(model), config, ByteTokenizer(), runner, PagePool(pages, 16))


def ask(tokens: list[int], output: int, **sampling: object) -> GenerationRequest:
    """A greedy request for `output` tokens, whatever they are."""
    parameters = {"temperature": 0.0, "max_tokens": output, "ignore_eos": True} | sampling
    return GenerationRequest(token_ids=tokens, sampling=SamplingParams(**parameters))  # type: ignore[arg-type]
