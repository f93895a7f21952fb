"""Whether a model fits into this machine's memory, told from its headers alone. Loads no torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from octavo_engine.config import EngineConfig
from octavo_engine.errors import ModelLoadError, OutOfMemory
from octavo_engine.model_info import ModelInfo
from octavo_engine.model_sizes import MatrixCount, ModelSizes
from octavo_engine.models.weights.layout import Weights, choose_layout, layout_bytes, table_layout
from octavo_engine.pool_size import free_memory, pool_size

Verdict = Literal["gpu", "gpu_less_context", "cpu", "too_big"]

# A context that is worth opening a model for, where none is named.
LEAST_CONTEXT = 4096
# Tokens of a step, and what a step needs beside its buffers: scratch memory of kernels, mostly.
STEP_TOKENS = 512
SCRATCH = 16 << 20
_GIGABYTE = 1e9


@dataclass(frozen=True, slots=True)
class FitReport:
    """What a model needs and what there is, in bytes.

    Attributes:
        verdict: "gpu", "gpu_less_context", "cpu" or "too_big". Only devices that this version computes on count.
        weights: of all weights in the layouts that they will be computed in.
        kv_per_token: of one position in the KV pages.
        workspace: of the buffers of a step.
        free: memory that is free now.
        max_context: positions that one sequence can have.
    """

    verdict: Verdict
    weights: int
    kv_per_token: int
    workspace: int
    free: int
    max_context: int


def fit(info: ModelInfo, config: EngineConfig = EngineConfig(), context: int | None = None) -> FitReport:
    """Tell whether a model fits beside what runs on this machine now.

    Args:
        info: what `inspect` gave.
        config: how it would be opened.
        context: positions that one sequence shall have; None for 4,096, or all that a smaller model has.

    Raises:
        ModelLoadError: the model cannot be opened at all.
    """
    if not info.supported or info.sizes is None:
        raise ModelLoadError(info.reason or "What this model needs cannot be told.")
    limit = min(info.context_length, config.max_context or info.context_length)
    weights = weight_bytes(info.sizes, config, limit)
    kv_per_token = info.sizes.kv_values * (4 if config.weights == "float32" else 2)
    workspace = _workspace(info, config)
    free = free_memory()
    most = min(limit, _positions(config, kv_per_token, limit, free - weights - workspace))
    enough = most >= min(limit, context or LEAST_CONTEXT)
    return FitReport("cpu" if enough else "too_big", weights, kv_per_token, workspace, free, most)


def require_room(info: ModelInfo, config: EngineConfig) -> None:
    """Check that the weights fit, before anything is read.

    Raises:
        OutOfMemory: they do not (bytes).
    """
    if info.sizes is None:
        return
    limit = min(info.context_length, config.max_context or info.context_length)
    needed = weight_bytes(info.sizes, config, limit) + _workspace(info, config)
    free = free_memory()
    if needed > free:
        raise OutOfMemory(
            f"{info.name} needs {needed / _GIGABYTE:.1f} GB of memory and {free / _GIGABYTE:.1f} GB are free. Close "
            "other programs, choose a smaller model, or get this one in a format with fewer bits.",
            needed=needed,
            available=free,
        )


def weight_bytes(sizes: ModelSizes, config: EngineConfig, context: int) -> int:
    """Bytes of all weights, and of the tables for `context` positions."""
    one_path = config.batch_invariant is True
    weights: Weights = "bfloat16" if one_path and config.weights == "auto" else config.weights
    matrices = sum(_matrix_bytes(matrix, weights, one_path=one_path) for matrix in sizes.matrices)
    return matrices + 4 * sizes.vectors + 2 * 4 * context * sizes.rotary_pairs


def _matrix_bytes(matrix: MatrixCount, weights: Weights, *, one_path: bool) -> int:
    layout = choose_layout(matrix.form, matrix.rows, matrix.columns, weights)
    if matrix.is_table:
        layout = table_layout(layout)
    return matrix.count * layout_bytes(layout, matrix.form, matrix.rows, matrix.columns, one_path=one_path)


def _workspace(info: ModelInfo, config: EngineConfig) -> int:
    assert info.sizes is not None
    size = 4 if config.weights == "float32" else 2
    buffers = min(STEP_TOKENS, config.max_batch_tokens) * info.sizes.step_values * size
    # Logits of all who draw, and a copy in which to draw.
    return buffers + 2 * 4 * config.max_running * info.vocab_size + SCRATCH


def _positions(config: EngineConfig, kv_per_token: int, limit: int, free: int) -> int:
    """Positions of the pool that the engine would make."""
    try:
        pages = pool_size(config, page_bytes=kv_per_token * config.page_size, context=limit, free=max(0, free))
    except OutOfMemory:
        return 0
    return pages * config.page_size
