"""A lock as its maker writes it: one entry for each package, its hashes on the lines that follow."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Lock:
    """The lock in the file `path`."""

    path: Path

    def names(self) -> frozenset[str]:
        """Names of all packages, normalised: small letters and hyphens."""
        lines = self.path.read_text(encoding="utf-8").splitlines()
        return frozenset(line.split("==", 1)[0] for line in lines if line and line[0].isalnum())

    def entries(self, names: tuple[str, ...]) -> str:
        """The entries of the named packages, with their hashes and without comments."""
        kept: list[str] = []
        keeping = False
        for line in self.path.read_text(encoding="utf-8").splitlines():
            if line and not line[0].isspace() and not line.startswith("#"):
                keeping = line.split("==", 1)[0] in names
            if keeping and not line.lstrip().startswith("#"):
                kept.append(line)
        return "\n".join(kept) + "\n"


def normalised(name: str) -> str:
    """A package's name as the lock spells it."""
    return name.lower().replace("_", "-").replace(".", "-")
