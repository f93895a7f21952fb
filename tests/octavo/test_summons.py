"""A second start reaches the first one, and nobody else does."""

import json
import socket
import stat
import threading
from pathlib import Path

import pytest

from octavo.summons import Summons, summon


def test_a_second_start_is_heard(tmp_path: Path) -> None:
    heard = threading.Semaphore(0)
    file = tmp_path / "instance.json"
    summons = Summons(file, heard.release)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    for _ in range(3):
        assert summon(file)
        assert heard.acquire(timeout=5)
    summons.close()
    summons.close()
    assert not file.exists()
    assert not summon(file)


def test_who_does_not_know_the_password_is_not_heard(tmp_path: Path) -> None:
    heard = threading.Event()
    file = tmp_path / "instance.json"
    summons = Summons(file, heard.set)
    where = json.loads(file.read_text())
    for said in (b"\n", b"wrong", b"x" * 200):
        with socket.create_connection(("127.0.0.1", where["port"]), timeout=5) as caller:
            caller.sendall(said)
            assert caller.recv(16) == b""
    assert not heard.is_set()
    assert summon(file)
    assert heard.wait(5)
    summons.close()


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"port": "x", "password": ""}', '{"port": 1, "password": "y"}'])
def test_a_file_that_leads_nowhere(tmp_path: Path, content: str) -> None:
    file = tmp_path / "instance.json"
    file.write_text(content)
    assert not summon(file)


def test_a_folder_that_takes_nothing_gives_the_socket_back(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="directory"):
        Summons(tmp_path / "missing" / "instance.json", lambda: None)
    assert not [thread for thread in threading.enumerate() if thread.name == "octavo-summons"]
