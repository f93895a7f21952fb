"""How a second start asks the first one to come to the front: a line over a socket of this machine.

The first start listens and writes port and password into a file that only its user can read. Knows no window.
"""

from __future__ import annotations

import hmac
import json
import os
import secrets
import socket
import threading
from collections.abc import Callable
from pathlib import Path

_HOST = "127.0.0.1"
_TIMEOUT_SECONDS = 2.0
_LONGEST = 256


class Summons:
    """Calls `on_summons`, on a thread of its own, whenever another start asks."""

    def __init__(self, file: Path, on_summons: Callable[[], None]) -> None:
        """Listen, and say in `file` how to reach this process. Raises OSError where that cannot be written."""
        self._file = file
        self._on_summons = on_summons
        self._password = secrets.token_hex(16)
        self._socket = socket.create_server((_HOST, 0))
        self._is_closed = False
        part = file.with_suffix(".part")
        try:
            with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as out:
                json.dump({"port": self._socket.getsockname()[1], "password": self._password}, out)
            part.replace(file)
        except OSError:
            self._socket.close()
            part.unlink(missing_ok=True)
            raise
        self._thread = threading.Thread(target=self._listen, name="octavo-summons", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening and take the file away. Idempotent."""
        if self._is_closed:
            return
        self._is_closed = True
        # Closing a socket does not wake a thread that waits in accept; a connection does.
        with socket.socket() as waker:
            waker.settimeout(_TIMEOUT_SECONDS)
            waker.connect_ex(self._socket.getsockname())
        self._thread.join()
        self._socket.close()
        self._file.unlink(missing_ok=True)

    def _listen(self) -> None:
        while not self._is_closed:
            connection, _ = self._socket.accept()
            with connection:
                connection.settimeout(_TIMEOUT_SECONDS)
                try:
                    said = connection.recv(_LONGEST)
                    if hmac.compare_digest(said, self._password.encode()):
                        self._on_summons()
                        connection.sendall(b"here")
                except OSError:
                    # Whoever called has hung up.
                    continue


def summon(file: Path) -> bool:
    """Ask the process that wrote `file` to come to the front; False where nobody answers."""
    try:
        where = json.loads(file.read_text(encoding="utf-8"))
        with socket.create_connection((_HOST, int(where["port"])), timeout=_TIMEOUT_SECONDS) as connection:
            connection.sendall(str(where["password"]).encode())
            return connection.recv(_LONGEST) == b"here"
    except (OSError, ValueError, KeyError, TypeError):
        return False
