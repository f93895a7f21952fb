"""A second start hands its files to the first."""

from __future__ import annotations

import json
import queue
import socket
import threading
from pathlib import Path

import pytest

from octavo.doorbell import Doorbell, ring


def test_ring_hands_files_over(tmp_path: Path) -> None:
    rings: queue.Queue[tuple[str, ...]] = queue.Queue()
    door = Doorbell(tmp_path / "door", rings.put)
    assert (tmp_path / "door").stat().st_mode & 0o077 == 0
    assert ring(tmp_path / "door", [str(tmp_path / "a b.gguf")])
    assert rings.get(timeout=10) == (str(tmp_path / "a b.gguf"),)
    assert ring(tmp_path / "door", [])
    assert rings.get(timeout=10) == ()
    door.close()


def test_nobody_answers_without_a_door_or_after_it_closed(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    assert not ring(tmp_path / "door", [])
    door = Doorbell(tmp_path / "door", lambda _: None)
    left = (tmp_path / "door").read_text()
    door.close()
    door.close()
    assert set(threading.enumerate()) == before
    assert not (tmp_path / "door").exists()
    # What a killed process leaves behind.
    (tmp_path / "door").write_text(left)
    assert not ring(tmp_path / "door", [])


@pytest.mark.parametrize("said", [b"", b"GET / HTTP/1.1\r\n", b'{"secret": "guess", "files": []}\n', b"[1]\n"])
def test_strangers_are_ignored_and_the_door_stays_open(tmp_path: Path, said: bytes) -> None:
    rings: queue.Queue[tuple[str, ...]] = queue.Queue()
    door = Doorbell(tmp_path / "door", rings.put)
    port = json.loads((tmp_path / "door").read_text())["port"]
    with socket.create_connection(("127.0.0.1", port), 5) as stranger:
        stranger.sendall(said)
        stranger.shutdown(socket.SHUT_WR)
        assert stranger.recv(100) == b""
    assert ring(tmp_path / "door", ["x"])
    assert rings.get(timeout=10) == (str(Path("x").absolute()),)
    assert rings.empty()
    door.close()


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"port": "x", "secret": ""}', '{"port": 99999999, "secret": ""}'])
def test_broken_address_is_nobody(tmp_path: Path, content: str) -> None:
    (tmp_path / "door").write_text(content)
    assert not ring(tmp_path / "door", [])
