"""Where every file lies that Octavo writes, and what lies beside the program. Makes no folder by itself."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import platformdirs

HOME_VARIABLE = "OCTAVO_HOME"


@dataclass(frozen=True, slots=True)
class Paths:
    """The layout below one data folder."""

    home: Path

    @classmethod
    def find(cls, home: str | os.PathLike[str] | None = None) -> Paths:
        """The layout below `home`, else below OCTAVO_HOME, else where this platform keeps the data of its users."""
        chosen = home or os.environ.get(HOME_VARIABLE)
        folder = Path(chosen) if chosen else platformdirs.user_data_path("octavo", appauthor=False)
        return cls(folder.expanduser().absolute())

    @property
    def database(self) -> Path:
        """The chats."""
        return self.home / "octavo.db"

    @property
    def models(self) -> Path:
        """Models of the user's own."""
        return self.home / "models"

    @property
    def pages(self) -> Path:
        """KV pages on disk."""
        return self.home / "pages"

    @property
    def backups(self) -> Path:
        """Copies of the database."""
        return self.home / "backups"

    @property
    def logs(self) -> Path:
        """What happened, for people who look for a fault."""
        return self.home / "logs"

    @property
    def settings(self) -> Path:
        """The user's choices."""
        return self.home / "settings.json"

    @property
    def summons(self) -> Path:
        """How a second start reaches the first one."""
        return self.home / "instance.json"

    @property
    def cache(self) -> Path:
        """What can be made again."""
        return self.home / "cache"

    def export(self) -> None:
        """Have the libraries that keep files of their own keep them below `cache`; call before they are imported.

        A variable that is set already stays, unless the data folder itself was chosen.
        """
        folders = {
            "HF_HOME": self.cache / "huggingface",
            "NUMBA_CACHE_DIR": self.cache / "numba",
            "TRITON_CACHE_DIR": self.cache / "triton",
            "TORCHINDUCTOR_CACHE_DIR": self.cache / "inductor",
        }
        is_chosen = HOME_VARIABLE in os.environ
        for name, folder in folders.items():
            if is_chosen or name not in os.environ:
                os.environ[name] = str(folder)


def program_share() -> Path:
    """The read-only data that was installed with the program."""
    return Path(sys.prefix) / "share" / "octavo"


def starter_model() -> Path | None:
    """The model that came with the program, if it is there."""
    return next(iter(sorted((program_share() / "models").glob("*.gguf"))), None)


def resource(name: str) -> Path:
    """A file of `resources/`, in the source tree or where it was installed.

    Raises:
        FileNotFoundError: it is in neither place; the installation is incomplete.
    """
    for folder in (Path(__file__).resolve().parents[2] / "resources", program_share() / "resources"):
        if (folder / name).exists():
            return folder / name
    raise FileNotFoundError(f"The file {name} of Octavo is missing; install Octavo again.")
