"""What a Hugging Face folder says of its model, in the words of `ModelInfo`. Loads neither torch nor transformers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from octavo_engine.errors import ModelLoadError
from octavo_engine.model_info import ModelInfo, RunsOn, model_name, template_features
from octavo_engine.model_sizes import MatrixCount, ModelSizes
from octavo_engine.models.files.checkpoint import Checkpoint, main_format
from octavo_engine.models.files.checkpoint_sizes import checkpoint_sizes
from octavo_engine.models.files.folder_checkpoint import ModelFolder, folder_checkpoint, read_json
from octavo_engine.models.files.stored import weights_in
from octavo_engine.models.specification.model_spec import Unsupported

# What GPT-2 and its kin call the same.
_OLDER_NAMES = {
    "max_position_embeddings": ("n_positions", "max_seq_len", "n_ctx"),
    "num_hidden_layers": ("n_layer", "n_layers"),
    "num_attention_heads": ("n_head", "n_heads"),
    "hidden_size": ("n_embd", "d_model"),
    "intermediate_size": ("n_inner", "ffn_dim"),
}
_SAMPLING = ("temperature", "top_k", "top_p", "min_p", "typical_p", "repetition_penalty")


def folder_info(folder: ModelFolder) -> ModelInfo:
    """Describe a model; one that Octavo cannot run is described too, with the reason."""
    config = folder.config
    text = config.get("text_config") if isinstance(config.get("text_config"), Mapping) else config
    assert isinstance(text, Mapping)
    checkpoint, runs_on, reason = _opened(folder)
    tensors = folder.tensors if checkpoint is None else checkpoint.tensors
    template = _chat_template(folder)
    return ModelInfo(
        path=folder.path,
        name=model_name(folder.path.resolve()),
        architecture=str(config.get("model_type", "unknown")),
        supported=reason is None,
        reason=reason,
        parameters=sum(map(weights_in, tensors.values())),
        quantization=main_format(tensors),
        file_bytes=folder.file_bytes,
        context_length=checkpoint.spec.context_length
        if checkpoint is not None
        else _number(text, "max_position_embeddings"),
        vocab_size=_number(text, "vocab_size"),
        layers=_number(text, "num_hidden_layers"),
        chat_template=template,
        features=template_features(template),
        sampling_defaults=_sampling(folder),
        license=None,
        sizes=_sizes(folder, text) if checkpoint is None else checkpoint_sizes(checkpoint),
        runs_on=runs_on,
    )


def _opened(folder: ModelFolder) -> tuple[Checkpoint | None, RunsOn, str | None]:
    """The checkpoint where our own decoder runs it; what runs the model, or why nothing does."""
    try:
        return folder_checkpoint(folder), "octavo", None
    except Unsupported:
        from octavo_engine.models.fallback.loading import transformers_obstacle

        return None, "transformers", transformers_obstacle(folder.config)
    except ModelLoadError as error:
        return None, "octavo", error.message


def _sizes(folder: ModelFolder, config: Mapping[str, Any]) -> ModelSizes | None:
    """What transformers will hold: every tensor as it is, and pages for the heads that the configuration states.

    None where it states them under names of its own.
    """
    matrices = tuple(
        MatrixCount("BF16", stored.shape[-2], stored.shape[-1], math.prod(stored.shape[:-2]))
        for stored in folder.tensors.values()
        if len(stored.shape) > 1
    )
    vectors = sum(stored.shape[0] for stored in folder.tensors.values() if len(stored.shape) == 1)
    heads = _number(config, "num_attention_heads")
    size = _number(config, "head_dim") or _number(config, "hidden_size") // max(1, heads)
    kv_heads = _number(config, "num_key_value_heads") or heads
    layers = _number(config, "num_hidden_layers")
    if not (layers and kv_heads and size):
        return None
    hidden, inner = _number(config, "hidden_size"), _number(config, "intermediate_size")
    return ModelSizes(matrices, vectors, 0, 2 * layers * kv_heads * -(-size // 8) * 8, 8 * hidden + 3 * inner)


def _chat_template(folder: ModelFolder) -> str | None:
    path = folder.path / "chat_template.jinja"
    if path.is_file():
        return path.read_text(encoding="utf-8", errors="replace")
    stated = _optional_json(folder, "tokenizer_config.json").get("chat_template")
    if isinstance(stated, list):
        named = {entry.get("name"): entry.get("template") for entry in stated if isinstance(entry, Mapping)}
        stated = named.get("default")
    return stated if isinstance(stated, str) else None


def _sampling(folder: ModelFolder) -> Mapping[str, Any]:
    stated = _optional_json(folder, "generation_config.json")
    return {key: stated[key] for key in _SAMPLING if isinstance(stated.get(key), int | float)}


def _optional_json(folder: ModelFolder, name: str) -> Mapping[str, Any]:
    return read_json(folder.path / name) if (folder.path / name).is_file() else {}


def _number(config: Mapping[str, Any], key: str) -> int:
    values = (config.get(name) for name in (key, *_OLDER_NAMES.get(key, ())))
    return next((value for value in values if isinstance(value, int)), 0)
