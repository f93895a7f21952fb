"""Where everything of a developer's checkout lies. Paths only: nothing is created or read here."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ProjectTree:
    """A checkout at `root` with its environment in `.venv`."""

    root: Path

    @property
    def environment(self) -> Path:
        """The virtual environment."""
        return self.root / ".venv"

    @property
    def stamps(self) -> Path:
        """One small file for each finished step; gone when the environment is deleted."""
        return self.environment / "octavo-setup"

    @property
    def pip_log(self) -> Path:
        """Everything that pip said in the last set-up."""
        return self.stamps / "pip.log"

    @property
    def models(self) -> Path:
        """Where the program looks for the starter model."""
        return self.environment / "share" / "octavo" / "models"

    @property
    def python(self) -> Path:
        """The environment's interpreter."""
        return self.program("python")

    @property
    def torch_lock(self) -> Path:
        """The exact release of PyTorch."""
        return self.root / "packaging" / "torch.lock"

    @property
    def requirements_lock(self) -> Path:
        """Everything else, every line with its hashes."""
        return self.root / "packaging" / "requirements.lock"

    def program(self, name: str) -> Path:
        """Path of an installed program, as the platform spells it."""
        if os.name == "nt":
            return self.environment / "Scripts" / f"{name}.exe"
        return self.environment / "bin" / name
