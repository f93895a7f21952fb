"""One process at a time, and no crash leaves the lock behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from octavo.instance_lock import InstanceLock

_HOLDER = """
import sys
from pathlib import Path
from octavo.instance_lock import InstanceLock
lock = InstanceLock(Path(sys.argv[1]))
print(lock.acquire(), flush=True)
sys.stdin.read()
"""


def test_second_holder_is_refused_until_the_first_lets_go(tmp_path: Path) -> None:
    first, second = InstanceLock(tmp_path / "lock"), InstanceLock(tmp_path / "lock")
    assert first.acquire()
    assert not second.acquire()
    assert (first.is_held, second.is_held) == (True, False)
    first.release()
    first.release()
    assert second.acquire()
    second.release()


def test_killed_holder_holds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdin is not None
    assert holder.stdout.readline() == "True\n"
    lock = InstanceLock(path)
    assert not lock.acquire()
    holder.kill()
    holder.communicate(timeout=10)
    assert lock.acquire()
    lock.release()
