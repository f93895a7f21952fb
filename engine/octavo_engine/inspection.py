"""Looks at a model's headers and says what it is, without loading it. Loads no torch."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from octavo_engine.model_info import ModelInfo

if TYPE_CHECKING:
    from octavo_engine.models.files.checkpoint import Checkpoint
    from octavo_engine.models.files.folder_checkpoint import ModelFolder
    from octavo_engine.models.files.gguf_checkpoint import GgufModel


def inspect(source: str | os.PathLike[str] | BinaryIO) -> ModelInfo:
    """What a model says of itself: a GGUF file, a Hugging Face folder, or a seekable binary file that holds a GGUF.

    Raises:
        ModelLoadError: missing, damaged, or no model.
    """
    if isinstance(source, str | os.PathLike):
        return describe(read_model(source), Path(source))
    from octavo_engine.models.files.gguf_checkpoint import read_gguf

    return describe(read_gguf(source), None)


def read_model(path: str | os.PathLike[str]) -> GgufModel | ModelFolder:
    """The headers of a GGUF file or of a Hugging Face folder; a file of such a folder stands for it.

    Raises:
        ModelLoadError: missing, damaged, or no model.
    """
    from octavo_engine.models.files.folder_checkpoint import read_folder
    from octavo_engine.models.files.gguf_checkpoint import read_gguf

    source = Path(path)
    if source.is_dir():
        return read_folder(source)
    if (source.suffix == ".safetensors" or source.name == "config.json") and source.is_file():
        return read_folder(source.parent)
    return read_gguf(source)


def checkpoint_of(model: GgufModel | ModelFolder) -> Checkpoint:
    """Specification and tensors of a model that has been read.

    Raises:
        ModelLoadError: an architecture, variant or format that Octavo's own decoder does not run, or damaged files.
    """
    from octavo_engine.models.files.folder_checkpoint import ModelFolder, folder_checkpoint
    from octavo_engine.models.files.gguf_checkpoint import gguf_checkpoint

    return folder_checkpoint(model) if isinstance(model, ModelFolder) else gguf_checkpoint(model)


def describe(model: GgufModel | ModelFolder, path: Path | None) -> ModelInfo:
    """The description of a model that has been read."""
    from octavo_engine.models.files.folder_checkpoint import ModelFolder
    from octavo_engine.models.files.folder_info import folder_info
    from octavo_engine.models.files.gguf_info import gguf_info

    return folder_info(model) if isinstance(model, ModelFolder) else gguf_info(model, path)
