"""The models that lie on this machine: the starter beside the program and the user's own in the data folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from octavo.paths import Paths, starter_model


class NoModel(Exception):
    """The model that was asked for is not there: a sentence for people."""


@dataclass(frozen=True, slots=True)
class Shelf:
    """The model files below `paths`, and the starter."""

    paths: Paths

    def models(self) -> tuple[Path, ...]:
        """All model files, the user's own first, each folder by name."""
        own = sorted(self.paths.models.glob("*.gguf")) if self.paths.models.is_dir() else []
        starter = starter_model()
        return (*own, *([starter] if starter is not None else []))

    def find(self, name: str | None = None) -> Path:
        """The file that `name` means: a path, or a file's name with or without its ending; None means the starter.

        Raises:
            NoModel: there is none.
        """
        if name is None:
            starter = starter_model() or next(iter(self.models()), None)
            if starter is None:
                raise NoModel("There is no model on this machine. Set Octavo up again, or name a model file (.gguf).")
            return starter
        path = Path(name).expanduser()
        if path.is_file():
            return path
        for model in self.models():
            if name.casefold() in (model.name.casefold(), model.stem.casefold()):
                return model
        raise NoModel(f"There is no model file {name}. Check the path, or name none to use the starter model.")
