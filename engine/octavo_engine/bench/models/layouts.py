"""What each weight layout takes in memory, and what it costs in accuracy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from octavo_engine.bench.goal import Goal
from octavo_engine.bench.opening import OpenEngine
from octavo_engine.bench.report import PartResult, table
from octavo_engine.bench.scale import Scale
from octavo_engine.inspection import checkpoint_of, read_model
from octavo_engine.models.decoder import Decoder
from octavo_engine.models.files.checkpoint import Checkpoint
from octavo_engine.models.files.stored import Stack
from octavo_engine.models.forward_batch import ForwardBatch
from octavo_engine.models.weights.layout import Weights
from octavo_engine.models.weights.loader import load_decoder
from octavo_engine.models.weights.tensor_reader import TensorReader
from octavo_engine.models.weights.weight_groups import quantize

# Layout, rows at once, and the most that it may cost (KL in nats).
_PATHS: tuple[tuple[Weights, int, float], ...] = (
    ("bfloat16", 100, 0.005),
    ("int4", 8, 0.005),
    ("int4", 100, 0.005),
    ("int8", 8, 0.015),
    ("int8", 100, 0.015),
)
_PAGE = 16


def measure(open_engine: OpenEngine, scale: Scale) -> PartResult:
    """Compare next-token distributions with those of float32 on plain English, and weights."""
    checkpoint = checkpoint_of(read_model(open_engine.model))
    with open_engine(kv_pages=64) as engine:
        tokens = engine.tokenizer.encode(english())[: scale.layout_tokens]
    exact = load_decoder(checkpoint, weights="float32")
    sizes: dict[str, int] = {"float32": exact.weight_bytes}
    expected = _distributions(exact, tokens, 100)
    del exact
    figures: dict[str, dict[str, float]] = {}
    goals = []
    for weights, rows, limit in _PATHS:
        decoder = load_decoder(checkpoint, weights=weights)
        sizes[weights] = decoder.weight_bytes
        got = _distributions(decoder, tokens, rows)
        divergence = float((expected.exp() * (expected - got)).sum(-1).mean())
        changed = float((expected.argmax(-1) != got.argmax(-1)).float().mean())
        figures[f"{weights}, {rows} rows"] = {"kl": divergence, "changed": changed}
        goals.append(Goal(f"KL of {weights} in {rows} rows", divergence, "<", limit))
    errors = _rounding(checkpoint)
    return PartResult(
        name="layouts",
        about=f"KL of the next token against float32 on the same weights, mean over {len(tokens):,} tokens, and the "
        "share of positions whose best token changes. Few rows and many take different kernels. The errors are of "
        "weights that a layout rounds once more (root mean square, relative); what a file has in as many bits is not.",
        figures={"tokens": len(tokens), "bytes": sizes, "paths": figures, "rounding": errors},
        tables=(
            table("Bytes of the whole model", ("", "MB"), [(name, size / 1e6) for name, size in sizes.items()]),
            table(
                "Against float32",
                ("", "KL", "changed %"),
                [(name, figure["kl"], 100 * figure["changed"]) for name, figure in figures.items()],
            ),
            table("Rounding weights", ("", "error %"), [(name, 100 * error) for name, error in errors.items()]),
        ),
        goals=tuple(goals),
    )


def english() -> str:
    """English that every installation has: the documentation of Python's own modules."""
    import argparse
    import collections
    import subprocess
    import tempfile

    return "\n\n".join(
        str(part.__doc__)
        for module in (argparse, collections, subprocess, tempfile)
        for part in (module, *vars(module).values())
        if getattr(part, "__doc__", None)
    )


def _distributions(decoder: Decoder, tokens: Sequence[int], rows: int) -> torch.Tensor:
    """Log-probabilities of all positions, float32 [tokens, vocabulary], computed `rows` at a time."""
    pages = np.arange(-(-len(tokens) // _PAGE), dtype=np.int32)[None]
    kv = torch.empty(decoder.kv_shape(pages.size, _PAGE), dtype=decoder.kv_dtype)
    parts = []
    for start in range(0, len(tokens), rows):
        stop = min(start + rows, len(tokens))
        batch = ForwardBatch(
            token_ids=np.asarray(tokens[start:stop], np.int32),
            positions=np.arange(start, stop, dtype=np.int32),
            slots=np.arange(start, stop, dtype=np.int64),
            query_starts=np.asarray([0, stop - start], np.int32),
            context_lengths=np.asarray([stop], np.int32),
            page_table=pages,
            logit_rows=np.arange(stop - start, dtype=np.int32),
        )
        parts.append(decoder.forward(batch, kv).log_softmax(-1))
    return torch.cat(parts)


def _rounding(checkpoint: Checkpoint) -> dict[str, float]:
    """Relative error of rounding the model's own matrices, and random normal ones, to groups of 32."""
    reader = TensorReader(checkpoint.files)
    stored = [part for name, part in checkpoint.tensors.items() if name.startswith("blk.0.") and len(part.shape) == 2]
    matrices = [reader.values(part).float() for part in stored if not isinstance(part, Stack)]
    normal = [torch.randn(1024, 1024, generator=torch.Generator().manual_seed(1))]
    errors = {}
    for of, chosen in (("of the first layer", matrices), ("of normal numbers", normal)):
        for bits in (8, 4):
            lost = sum(float((quantize(each, bits).values() - each).square().sum()) for each in chosen)
            whole = sum(float(each.square().sum()) for each in chosen)
            errors[f"{bits} bits {of}"] = (lost / whole) ** 0.5
    return errors
