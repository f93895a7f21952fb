"""Counts what a checkpoint is made of. Loads no torch."""

from __future__ import annotations

import math
from collections import Counter

from octavo_engine.model_sizes import MatrixCount, ModelSizes
from octavo_engine.models.files.checkpoint import Checkpoint
from octavo_engine.models.files.stored import Stored
from octavo_engine.models.specification.model_spec import ModelSpec

_TABLES = ("token_embd.weight", "output.weight")


def checkpoint_sizes(checkpoint: Checkpoint) -> ModelSizes:
    """The parts of a checkpoint."""
    spec = checkpoint.spec
    counts: Counter[tuple[str, int, int, bool]] = Counter()
    vectors = 0
    for name, stored in checkpoint.tensors.items():
        if len(stored.shape) == 1:
            vectors += 0 if name.startswith("rope_") else stored.shape[0]
            continue
        *stacked, rows, columns = stored.shape
        counts[_form(name, stored), rows, columns, name in _TABLES] += math.prod(stacked)
    matrices = tuple(
        MatrixCount(form, rows, columns, count, is_table) for (form, rows, columns, is_table), count in counts.items()
    )
    rotations = 1 if spec.local_rope is None else 2
    return ModelSizes(matrices, vectors, rotations * spec.rope.width // 2, spec.kv_values_per_token, _step_values(spec))


def _form(name: str, stored: Stored) -> str:
    # Which experts compute a token is decided in full precision, whatever the file holds.
    return "BF16" if "ffn_gate_inp" in name else stored.format


def _step_values(spec: ModelSpec) -> int:
    inner = max(spec.intermediate, spec.experts.width if spec.experts is not None else 0)
    # The stream in float32 counts twice; what blocks read and add; queries, keys, values; gate, up and their product.
    return 4 * spec.hidden + 2 * spec.query_width + 2 * spec.kv_width + 3 * inner
