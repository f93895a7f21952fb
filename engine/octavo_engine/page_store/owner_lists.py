"""Who needs which page on disk: one short file for each owner, to which keys are appended."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

from octavo_engine.page_store.private_file import append_to_file, replace_file

_SUFFIX = ".owner"
_KEY_BYTES = 32


class OwnerLists:
    """The lists in one folder. Not for several threads at once.

    A file's first line is a JSON object with the owner's name; keys of 32 bytes follow. What a crash cut short at the
    end is left out.
    """

    def __init__(self, folder: Path) -> None:
        """Keep the lists in `folder`, which exists."""
        self._folder = folder

    def read(self) -> dict[str, set[bytes]]:
        """All owners with their keys; lists that cannot be read are removed, so that nobody needs their pages.

        A list that was cut short is mended, so that what is appended later stands at its place.
        """
        found: dict[str, set[bytes]] = {}
        for path in self._folder.glob(f"*{_SUFFIX}"):
            try:
                line, _, keys = path.read_bytes().partition(b"\n")
                owner = json.loads(line)["owner"]
                if path != self._path(owner):
                    raise ValueError(owner)
            except (OSError, ValueError, KeyError, TypeError, AttributeError):
                path.unlink(missing_ok=True)
                continue
            whole = len(keys) - len(keys) % _KEY_BYTES
            found[owner] = {keys[start : start + _KEY_BYTES] for start in range(0, whole, _KEY_BYTES)}
            if whole < len(keys):
                self.rewrite(owner, found[owner])
        return found

    def add(self, owner: str, keys: Iterable[bytes]) -> None:
        """Append keys to an owner's list.

        Raises:
            OSError: no space, no such folder, read-only.
        """
        path, content = self._path(owner), b"".join(keys)
        append_to_file(path, content if path.exists() else self._first_line(owner) + content)

    def rewrite(self, owner: str, keys: Iterable[bytes]) -> None:
        """Replace an owner's list; an empty one is removed.

        Raises:
            OSError: as for `add`.
        """
        content = b"".join(keys)
        if content:
            replace_file(self._path(owner), (self._first_line(owner), content))
        else:
            self.remove(owner)

    def remove(self, owner: str) -> None:
        """Remove an owner's list."""
        self._path(owner).unlink(missing_ok=True)

    def _path(self, owner: str) -> Path:
        return self._folder / (hashlib.sha256(owner.encode()).hexdigest()[:32] + _SUFFIX)

    @staticmethod
    def _first_line(owner: str) -> bytes:
        return json.dumps({"owner": owner}).encode() + b"\n"
