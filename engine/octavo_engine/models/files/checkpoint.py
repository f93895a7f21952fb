"""A model on disk: its specification, and where each tensor lies, whatever the format of its files. Loads no torch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from octavo_engine.models.files.stored import Stored, weights_in
from octavo_engine.models.specification.model_spec import ModelSpec


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A model that can be loaded.

    Attributes:
        spec: the specification, checked against the tensors.
        tensors: those that the specification names, by their GGUF names.
        files: the files that hold them.
        norm_offset: is added to the weights of all normalisations.
    """

    spec: ModelSpec
    tensors: Mapping[str, Stored]
    files: tuple[Path, ...]
    norm_offset: float = 0.0

    @property
    def nbytes(self) -> int:
        """Bytes of all tensors as they are stored."""
        return sum(stored.nbytes for stored in self.tensors.values())


def main_format(tensors: Mapping[str, Stored]) -> str:
    """The format that most weights have."""
    sizes: Counter[str] = Counter()
    for stored in tensors.values():
        sizes[stored.format] += weights_in(stored)
    return sizes.most_common(1)[0][0] if sizes else "unknown"
