"""What a GGUF header says of its model, in the words of `ModelInfo`. Loads no torch."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from octavo_engine.errors import ModelLoadError
from octavo_engine.model_info import ModelInfo, model_name
from octavo_engine.models.gguf_header import GgufHeader
from octavo_engine.models.specification import read_specification

# What a chat template must mention to have a feature.
_FEATURES: Mapping[str, tuple[str, ...]] = {
    "system": ("system",),
    "tools": ("tools",),
    "reasoning": ("<think>", "reasoning_content", "enable_thinking"),
    "vision": ("<|image", "<image", "vision_start", "image_url"),
}
_SAMPLING = "general.sampling."


def model_info(header: GgufHeader, path: Path | None) -> ModelInfo:
    """Describe a model; one that Octavo cannot run is described too, with the reason."""
    metadata = header.metadata
    architecture = str(metadata.get("general.architecture", "unknown"))
    reason = _obstacle(header)
    sizes: Counter[str] = Counter()
    for tensor in header.tensors.values():
        sizes[tensor.type.name] += math.prod(tensor.shape)
    template = metadata.get("tokenizer.chat_template")
    template = template if isinstance(template, str) else None
    licence = metadata.get("general.license")
    return ModelInfo(
        path=path,
        name=model_name(path) if path else str(metadata.get("general.name", architecture)),
        architecture=architecture,
        supported=reason is None,
        reason=reason,
        parameters=sizes.total(),
        quantization=sizes.most_common(1)[0][0] if sizes else "unknown",
        file_bytes=header.file_bytes,
        context_length=_number(metadata, f"{architecture}.context_length"),
        vocab_size=_vocabulary(header),
        layers=_number(metadata, f"{architecture}.block_count"),
        chat_template=template,
        features=_features(template),
        sampling_defaults=_sampling(metadata),
        license=licence if isinstance(licence, str) else None,
    )


def _obstacle(header: GgufHeader) -> str | None:
    """Why the model cannot run, or None."""
    try:
        read_specification(header)
    except ModelLoadError as error:
        return error.message
    return None


def _vocabulary(header: GgufHeader) -> int:
    embedding = header.tensors.get("token_embd.weight")
    if embedding is not None:
        return embedding.shape[0]
    return len(header.metadata.get("tokenizer.ggml.tokens", ()))


def _number(metadata: Mapping[str, Any], key: str) -> int:
    value = metadata.get(key, 0)
    return value if isinstance(value, int) else 0


def _features(template: str | None) -> frozenset[str]:
    if template is None:
        return frozenset()
    return frozenset(name for name, words in _FEATURES.items() if any(word in template for word in words))


def _sampling(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """`general.sampling.temp` and its like, which some converters write."""
    return {key.removeprefix(_SAMPLING): value for key, value in metadata.items() if key.startswith(_SAMPLING)}
