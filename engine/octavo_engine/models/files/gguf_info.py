"""What GGUF files say of their model, in the words of `ModelInfo`. Loads no torch."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from octavo_engine.errors import ModelLoadError
from octavo_engine.model_info import ModelInfo, model_name, template_features
from octavo_engine.models.files.checkpoint import Checkpoint, main_format
from octavo_engine.models.files.checkpoint_sizes import checkpoint_sizes
from octavo_engine.models.files.gguf_checkpoint import GgufModel, gguf_checkpoint
from octavo_engine.models.files.stored import weights_in

_SAMPLING = "general.sampling."


def gguf_info(model: GgufModel, path: Path | None) -> ModelInfo:
    """Describe a model; one that Octavo cannot run is described too, with the reason."""
    header = model.header
    metadata = header.metadata
    architecture = str(metadata.get("general.architecture", "unknown"))
    checkpoint, reason = _opened(model)
    template = metadata.get("tokenizer.chat_template")
    template = template if isinstance(template, str) else None
    licence = metadata.get("general.license")
    return ModelInfo(
        path=path,
        name=model_name(path) if path else str(metadata.get("general.name", architecture)),
        architecture=architecture,
        supported=reason is None,
        reason=reason,
        parameters=sum(map(weights_in, header.tensors.values())),
        quantization=main_format(header.tensors),
        file_bytes=header.file_bytes,
        context_length=checkpoint.spec.context_length
        if checkpoint is not None
        else _number(metadata, f"{architecture}.context_length"),
        vocab_size=_vocabulary(model),
        layers=_number(metadata, f"{architecture}.block_count"),
        chat_template=template,
        features=template_features(template),
        sampling_defaults=_sampling(metadata),
        license=licence if isinstance(licence, str) else None,
        sizes=None if checkpoint is None else checkpoint_sizes(checkpoint),
    )


def _opened(model: GgufModel) -> tuple[Checkpoint | None, str | None]:
    """The checkpoint, or why the model cannot run."""
    try:
        return gguf_checkpoint(model), None
    except ModelLoadError as error:
        return None, error.message


def _vocabulary(model: GgufModel) -> int:
    embedding = model.header.tensors.get("token_embd.weight")
    if embedding is not None and embedding.shape:
        return embedding.shape[0]
    return len(model.header.metadata.get("tokenizer.ggml.tokens", ()))


def _number(metadata: Mapping[str, Any], key: str) -> int:
    value = metadata.get(key, 0)
    return value if isinstance(value, int) else 0


def _sampling(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """`general.sampling.temp` and its like, which some converters write."""
    return {key.removeprefix(_SAMPLING): value for key, value in metadata.items() if key.startswith(_SAMPLING)}
