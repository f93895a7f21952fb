"""The models that lie on this machine: the starter beside the program and the user's own in the data folder."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from octavo.paths import Paths, starter_model


class NoModel(Exception):
    """The model that was asked for is not there: a sentence for people."""


# The second and later files of a model: name-00002-of-00003.gguf.
_LATER_PART = re.compile(r"-(?!00001)\d{5}-of-\d{5}\.gguf")


@dataclass(frozen=True, slots=True)
class Shelf:
    """The model files below `paths`, and the starter."""

    paths: Paths

    def models(self) -> tuple[Path, ...]:
        """All model files and folders, the user's own first, by name; of a model in several files the first."""
        entries = sorted(self.paths.models.iterdir()) if self.paths.models.is_dir() else []
        own = [path for path in entries if _is_model(path)]
        starter = starter_model()
        return (*own, *([starter] if starter is not None else []))

    def find(self, name: str | None = None) -> Path:
        """The model that `name` means: a path, or its name with or without its ending; None means the starter.

        Raises:
            NoModel: there is none.
        """
        if name is None:
            starter = starter_model() or next(iter(self.models()), None)
            if starter is None:
                raise NoModel(
                    "There is no model on this machine. Set Octavo up again, or name a .gguf file or a folder."
                )
            return starter
        path = Path(name).expanduser()
        if path.exists():
            return path
        for model in self.models():
            if name.casefold() in (model.name.casefold(), model.stem.casefold()):
                return model
        raise NoModel(f"There is no model {name}. Check the path, or name none to use the starter model.")


def _is_model(path: Path) -> bool:
    """Whether a file or folder looks like a model; what it really is, is seen when it is opened."""
    if path.is_dir():
        return (path / "config.json").is_file() and any(path.glob("*.safetensors"))
    return path.suffix == ".gguf" and _LATER_PART.search(path.name) is None
