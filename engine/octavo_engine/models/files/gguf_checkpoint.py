"""Opens GGUF files as a checkpoint: one file, or the parts of a split model. Loads no torch."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

import numpy as np

from octavo_engine.errors import ModelLoadError
from octavo_engine.models.files.checkpoint import Checkpoint
from octavo_engine.models.files.gguf_header import GgufHeader, read_header
from octavo_engine.models.files.stored import TensorInfo
from octavo_engine.models.files.tensor_type import READABLE, TensorType
from octavo_engine.models.specification.from_gguf import SPECIFYING_TENSORS, gguf_specification
from octavo_engine.models.specification.model_spec import check_specification

# llama.cpp's gguf-split names parts so, and numbers them from 1 in names, from 0 in headers.
_PART = re.compile(r"(.*)-(\d{5})-of-(\d{5})\.gguf")
MAX_PARTS = 1000
MAX_FACTORS = 1 << 16


@dataclasses.dataclass(frozen=True, slots=True)
class GgufModel:
    """The headers of all files of a model as one.

    Attributes:
        header: metadata of the first part and tensors of all; `TensorInfo.file` counts in `files`.
        files: empty when the model was read from a binary file.
    """

    header: GgufHeader
    files: tuple[Path, ...]

    @property
    def sources(self) -> tuple[Path, ...]:
        """The files that decide what the model computes."""
        return self.files


def read_gguf(source: Path | BinaryIO) -> GgufModel:
    """Read the headers of a model, whichever of its parts is named.

    Raises:
        ModelLoadError: a file is missing, damaged, or no part of this model.
    """
    header = read_header(source)
    parts = header.metadata.get("split.count", 1)
    if not isinstance(parts, int) or not 0 <= parts <= MAX_PARTS:
        raise ModelLoadError(f"The model file is damaged: it is one of {parts!r} parts. Download it again.")
    if parts <= 1 or not isinstance(source, Path):
        return GgufModel(header, (source,) if isinstance(source, Path) else ())
    return _joined(source, parts)


def gguf_checkpoint(model: GgufModel) -> Checkpoint:
    """The checkpoint in GGUF files.

    Raises:
        ModelLoadError: an architecture, variant or format that Octavo does not run, or damaged files.
    """
    tensors = model.header.tensors
    factors = {name: _factors(model, name) for name in SPECIFYING_TENSORS & tensors.keys()}
    spec = gguf_specification(model.header.metadata, tensors, factors)
    check_specification(spec, {name: tensor.shape for name, tensor in tensors.items()}, SPECIFYING_TENSORS)
    check_formats(tensors)
    return Checkpoint(spec, {name: tensors[name] for name in tensors.keys() - SPECIFYING_TENSORS}, model.files)


def check_formats(tensors: Mapping[str, TensorInfo]) -> None:
    """Check that all formats can be read.

    Raises:
        ModelLoadError: one cannot.
    """
    for tensor in tensors.values():
        if tensor.type not in READABLE:
            raise ModelLoadError(
                f"The model holds weights in the format {tensor.format}, which this Octavo does not read. "
                f"Get the model in one of: {', '.join(kind.name for kind in sorted(READABLE))}."
            )


def _joined(path: Path, count: int) -> GgufModel:
    name = _PART.fullmatch(path.name)
    if name is None or int(name[3]) != count:
        raise ModelLoadError(
            f"{path.name} is one of {count} parts of a model, and its name does not say which. Give all parts their "
            f"original names, such as model-00001-of-{count:05}.gguf."
        )
    files = tuple(path.with_name(f"{name[1]}-{number:05}-of-{count:05}.gguf") for number in range(1, count + 1))
    missing = [file.name for file in files if not file.is_file()]
    if missing:
        raise ModelLoadError(
            f"The model has {count} parts and {len(missing)} of them are not in its folder: {missing[0]}"
            f"{' and others' if len(missing) > 1 else ''}. Download them too.",
            needed=count,
            available=count - len(missing),
        )
    headers = [read_header(file) for file in files]
    tensors: dict[str, TensorInfo] = {}
    for number, (file, header) in enumerate(zip(files, headers, strict=True)):
        if header.metadata.get("split.no") != number or header.metadata.get("split.count") != count:
            raise ModelLoadError(f"{file.name} is no part {number + 1} of {count}. Download it again.")
        twice = tensors.keys() & header.tensors.keys()
        if twice:
            raise ModelLoadError(f"{file.name} is damaged: it holds the tensor {min(twice)!r} once more.")
        tensors |= {name: dataclasses.replace(tensor, file=number) for name, tensor in header.tensors.items()}
    stated = headers[0].metadata.get("split.tensors.count", len(tensors))
    if stated != len(tensors):
        raise ModelLoadError(
            f"The model's parts hold {len(tensors)} tensors instead of {stated}. Download them again.",
        )
    size = sum(header.file_bytes for header in headers)
    return GgufModel(dataclasses.replace(headers[0], tensors=tensors, file_bytes=size), files)


def _factors(model: GgufModel, name: str) -> tuple[float, ...]:
    """The numbers of a small tensor."""
    tensor = model.header.tensors[name]
    if tensor.type != TensorType.F32 or tensor.nbytes > MAX_FACTORS:
        raise ModelLoadError(f"The model file is damaged: {name} is {tensor.nbytes:,} bytes of {tensor.format}.")
    if not model.files:
        # From a binary file only the header was read: what depends on the factors cannot be told, and need not be.
        return ()
    with model.files[tensor.file].open("rb") as file:
        file.seek(tensor.offset)
        return tuple(np.frombuffer(file.read(tensor.nbytes), "<f4").tolist())
