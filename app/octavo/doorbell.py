"""How a second start of Octavo calls the first: a local socket that hands over the files it was given.

The first process listens on the loopback interface and leaves port and a secret in a file of the data folder that only
its user can read. Knows no window; the listener is told of each ring on the doorbell's own thread.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import logging
import os
import secrets
import socket
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

_log = logging.getLogger(__name__)
_SECONDS = 3.0
_LONGEST = 1 << 16
_HOST = "127.0.0.1"


class Doorbell:
    """Listens for further starts until it is closed."""

    def __init__(self, path: Path, on_ring: Callable[[tuple[str, ...]], None]) -> None:
        """Listen, and leave the address at `path`; `on_ring` gets absolute paths of files. Raises OSError."""
        self._path = path
        self._on_ring = on_ring
        self._secret = secrets.token_hex(16)
        self._socket = socket.create_server((_HOST, 0))
        self._is_closed = False
        try:
            self._leave_address()
        except OSError:
            self._socket.close()
            raise
        self._thread = threading.Thread(target=self._run, name="octavo-doorbell", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening and give the thread back. Idempotent."""
        if self._is_closed:
            return
        self._is_closed = True
        self._path.unlink(missing_ok=True)
        # A blocked accept() does not notice that its socket was closed; a caller wakes it.
        with contextlib.suppress(OSError), socket.create_connection(self._socket.getsockname(), _SECONDS):
            pass
        self._thread.join()
        self._socket.close()

    def _leave_address(self) -> None:
        part = self._path.with_suffix(".part")
        part.unlink(missing_ok=True)
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            json.dump({"port": self._socket.getsockname()[1], "secret": self._secret}, file)
        part.replace(self._path)

    def _run(self) -> None:
        while True:
            caller, _ = self._socket.accept()
            with caller:
                if self._is_closed:
                    return
                caller.settimeout(_SECONDS)
                try:
                    files = self._listen(caller)
                except (OSError, ValueError, KeyError, TypeError) as fault:
                    _log.warning("a caller at the door was not understood: %s", fault)
                    continue
            if files is not None:
                self._on_ring(files)

    def _listen(self, caller: socket.socket) -> tuple[str, ...] | None:
        """What a caller hands over; None for one that does not know the secret."""
        with caller.makefile("rwb") as stream:
            said = json.loads(stream.readline(_LONGEST))
            if not hmac.compare_digest(str(said["secret"]), self._secret):
                return None
            stream.write(b"come in\n")
            stream.flush()
        return tuple(str(name) for name in said["files"])


def ring(path: Path, files: Sequence[str]) -> bool:
    """Call the process whose address is at `path` and hand it `files`; False where nobody answers."""
    try:
        address = json.loads(path.read_text(encoding="utf-8"))
        message = {"secret": address["secret"], "files": [str(Path(name).absolute()) for name in files]}
        with socket.create_connection((_HOST, int(address["port"])), _SECONDS) as door, door.makefile("rwb") as stream:
            stream.write(json.dumps(message).encode() + b"\n")
            stream.flush()
            return stream.readline(_LONGEST) == b"come in\n"
    except FileNotFoundError:
        return False
    except (OSError, ValueError, KeyError, TypeError) as fault:
        # What a crash left behind: the port is closed, or somebody else's by now.
        _log.info("nobody is at the door: %s", fault)
        return False
