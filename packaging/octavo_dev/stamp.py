"""Stamp: remembers with which inputs a step of the set-up was finished. Written last and renamed into place, so a step
that was interrupted at any point has none.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path


def fingerprint(*parts: str | Path) -> str:
    """SHA-256 over texts and over the contents of files, in order; a missing file counts as empty."""
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, Path):
            content = part.read_bytes() if part.is_file() else b""
        else:
            content = part.encode()
        digest.update(len(content).to_bytes(8, "big"))
        digest.update(content)
    return digest.hexdigest()


def folder_fingerprint(folder: Path, pattern: str) -> str:
    """SHA-256 over the names and contents of the files below `folder` that match `pattern`."""
    files = sorted(path for path in folder.rglob(pattern) if path.is_file())
    parts: list[str | Path] = []
    for path in files:
        parts += [path.relative_to(folder).as_posix(), path]
    return fingerprint(*parts)


@dataclass(frozen=True, slots=True)
class Stamp:
    """The mark of one finished step."""

    path: Path

    def matches(self, key: str) -> bool:
        """Whether the step was finished with these inputs."""
        try:
            return self.path.read_text(encoding="utf-8") == key
        except FileNotFoundError:
            return False

    def write(self, key: str) -> None:
        """Mark the step as finished."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        part = self.path.with_suffix(".part")
        part.write_text(key, encoding="utf-8")
        part.replace(self.path)

    def remove(self) -> None:
        """Forget that the step was finished."""
        self.path.unlink(missing_ok=True)
