"""Digests of model files, kept beside the pages so that a file is read through once only."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

from octavo_engine.page_store.private_file import replace_file

_CHUNK = 8 << 20
_REMEMBERED = 64


class ModelDigests:
    """The digests in one folder's `models.json`, by path, size and time of change."""

    def __init__(self, folder: Path) -> None:
        """Use the list in `folder`; one that is missing or broken is begun anew."""
        self._path = folder / "models.json"

    def known(self, model: Path) -> str | None:
        """The digest of a file that has not changed since it was computed; None if it has to be computed."""
        entry = self._read().get(str(model.resolve()))
        return entry["digest"] if entry is not None and entry["identity"] == _identity(model) else None

    def compute(self, model: Path, is_unwanted: Callable[[], bool]) -> str | None:
        """Read a file through, remember its digest and return it; None when it became unwanted meanwhile.

        Raises:
            OSError: the file cannot be read.
        """
        identity = _identity(model)
        digest = hashlib.sha256()
        with model.open("rb", buffering=0) as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
                if is_unwanted():
                    return None
        entries = self._read()
        entries.pop(str(model.resolve()), None)
        entries[str(model.resolve())] = {"identity": identity, "digest": digest.hexdigest()}
        kept = dict(list(entries.items())[-_REMEMBERED:])
        replace_file(self._path, [json.dumps(kept).encode()])
        return digest.hexdigest()

    def _read(self) -> dict[str, dict[str, str]]:
        try:
            entries = json.loads(self._path.read_bytes())
            return {
                str(path): {name: str(entry[name]) for name in ("identity", "digest")}
                for path, entry in entries.items()
            }
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return {}


def _identity(model: Path) -> str:
    status = model.stat()
    return f"{status.st_size}-{status.st_mtime_ns}-{status.st_ino}"
