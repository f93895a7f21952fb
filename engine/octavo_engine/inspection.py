"""Looks at a model file's header and says what it is, without loading it. Loads no torch."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

from octavo_engine.model_info import ModelInfo


def inspect(source: str | os.PathLike[str] | BinaryIO) -> ModelInfo:
    """What a GGUF file, or a seekable binary file that holds one, says of itself.

    Raises:
        ModelLoadError: missing, damaged, or not a GGUF file.
    """
    from octavo_engine.models.gguf_header import read_header
    from octavo_engine.models.gguf_info import model_info

    path = Path(source) if isinstance(source, str | os.PathLike) else None
    return model_info(read_header(source), path)
