"""What a model file says of itself, from its header alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """One model on disk.

    Attributes:
        supported: True when `Engine.open` can run it; otherwise `reason` says why not.
        parameters: number of weights.
        quantization: the format of most weights, such as "Q4_1".
        file_bytes: size of all its files.
        context_length: positions that the model was trained for.
        features: of "system", "tools", "reasoning", "vision", by what its chat template uses.
        sampling_defaults: the model's own recommendation, if it has one.
    """

    path: Path | None
    name: str
    architecture: str
    supported: bool
    reason: str | None
    parameters: int
    quantization: str
    file_bytes: int
    context_length: int
    vocab_size: int
    layers: int
    chat_template: str | None
    features: frozenset[str]
    sampling_defaults: Mapping[str, Any]
    license: str | None
