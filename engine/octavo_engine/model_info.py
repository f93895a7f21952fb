"""What a model file says of itself, from its header alone."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from octavo_engine.model_sizes import ModelSizes

# Names of quantisations at the end of a file's name: Q4_K_M, IQ4_XS, BF16, MXFP4.
_QUANTISATION = re.compile(r"[-_. ]+(?:i?q\d\w*|b?f(?:16|32)|mxfp4)$", re.IGNORECASE)


def model_name(path: Path) -> str:
    """The name of a file or folder without its quantisation, in words: "SmolLM2 135M Instruct"."""
    if path.suffix in (".safetensors", ".json"):
        # A file of a folder stands for the folder.
        path = path.parent
    plain = _PART.sub("", path.stem if path.suffix == ".gguf" else path.name)
    return _QUANTISATION.sub("", plain).replace("-", " ").replace("_", " ").strip() or plain


# One of several files of a model: -00001-of-00003.
_PART = re.compile(r"-\d{5}-of-\d{5}$")

RunsOn = Literal["octavo", "transformers"]

# What a chat template must mention to have a feature.
_FEATURES: Mapping[str, tuple[str, ...]] = {
    "system": ("system",),
    "tools": ("tools",),
    "reasoning": ("<think>", "reasoning_content", "enable_thinking"),
    "vision": ("<|image", "<image", "vision_start", "image_url"),
}


def template_features(template: str | None) -> frozenset[str]:
    """Which of "system", "tools", "reasoning", "vision" a chat template knows."""
    if template is None:
        return frozenset()
    return frozenset(name for name, words in _FEATURES.items() if any(word in template for word in words))


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
        sizes: what its memory depends on; None where that cannot be told.
        runs_on: "octavo": our own decoder; "transformers": the library computes it, slower.
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
    sizes: ModelSizes | None = None
    runs_on: RunsOn = "octavo"
