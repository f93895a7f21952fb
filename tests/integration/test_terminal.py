"""The installed `octavo` in a process of its own, with the starter model: answers, times, files, a terminal."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from small_disk import mounted, needs_mount

OCTAVO = [sys.executable, "-m", "octavo"]
PARIS = ["chat", "--prompt", "What is the capital of France?", "--temperature", "0", "--max-tokens", "32", "--json"]


@pytest.fixture(autouse=True)
def _needs_the_starter_model(starter_model: Path) -> None:
    """Every test here talks to it."""


def test_capital_of_france_within_fifteen_seconds(tmp_path: Path) -> None:
    _run(PARIS)  # The kernels of this processor are compiled once, by set-up or here.
    began = time.monotonic()
    done = _run(PARIS)
    assert time.monotonic() - began < 15
    answer = json.loads(done.stdout)
    assert "Paris" in answer["text"]
    assert answer["finish_reason"] == "stop"
    assert answer["ttft_s"] < 5
    assert done.returncode == 0


@pytest.mark.timeout(90)
def test_first_start_says_that_it_prepares(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With no compiled kernels anywhere: neither beside the program nor in the data folder."""
    code = "import sys; sys.prefix = sys.argv.pop(1); from octavo.cli import main; sys.exit(main())"
    prefix = tmp_path / "prefix"
    (prefix / "share" / "octavo").mkdir(parents=True)
    (prefix / "share" / "octavo" / "models").symlink_to(Path(sys.prefix) / "share" / "octavo" / "models")
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-c", code, prefix, *PARIS], capture_output=True, text=True, check=False)
    assert time.monotonic() - began < 40
    assert "preparing" in done.stderr
    assert "Paris" in json.loads(done.stdout)["text"]


def test_every_file_is_written_below_octavo_home(tmp_path: Path, octavo_home: Path) -> None:
    """HOME, the working folder, the folder for temporary files and the sources are as before."""
    places = {name: tmp_path / name for name in ("home", "work", "temporary")}
    for place in places.values():
        place.mkdir()
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(places["home"]),
        "TMPDIR": str(places["temporary"]),
        "OCTAVO_HOME": str(octavo_home),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    sources = Path(__file__).resolve().parents[2]
    roots = [*places.values(), *(sources / name for name in ("app", "engine", "kernels", "resources"))]
    roots.append(Path(sys.prefix) / "share")
    before = _files(roots)
    for arguments in (PARIS, ["doctor", "--json"]):
        done = subprocess.run(
            [*OCTAVO, *arguments], env=environment, cwd=places["work"], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
    assert _files(roots) == before


def test_doctor_tells_what_runs_here(octavo_home: Path) -> None:
    report = json.loads(_run(["doctor", "--json"]).stdout)
    assert report["ok"] is True
    assert {"octavo", "python", "torch", "numba", "PySide6"} <= set(report["versions"])
    assert report["paths"]["home"] == str(octavo_home)
    assert [device["kind"] for device in report["devices"]][-1] == "cpu"
    choices = {choice["operation"]: choice["chosen"] for choice in report["kernels"]["choices"]}
    assert "paged_attention" in choices
    assert "Paris" in report["self_test"]["text"]
    assert report["self_test"]["problems"] == []
    people = _run(["doctor"]).stdout
    assert "Self-test: passed" in people
    assert report["energy"]
    assert f"Energy: {report['energy']}" in people
    assert f"paged_attention on cpu: {choices['paged_attention']}" in people


@needs_mount
@pytest.mark.parametrize("options", ["ro", "size=16k"])
def test_answers_although_nothing_can_be_written(tmp_path: Path, octavo_home: Path, options: str) -> None:
    """A read-only data folder, and one on a full disk: `octavo chat` stores nothing, so it needs neither."""
    with mounted(octavo_home, options):
        done = _run(PARIS)
    assert done.returncode == 0, done.stderr
    assert "Paris" in json.loads(done.stdout)["text"]


def test_bench_measures_and_judges(tmp_path: Path) -> None:
    done = _run(["bench", "--quick", "--only", "turns,swap", "--json", "--save", str(tmp_path / "kept")])
    assert done.returncode in (0, 1), done.stderr
    report = json.loads(done.stdout)
    assert list(report["parts"]) == ["turns", "swap"]
    assert report["ok"] == (done.returncode == 0)
    goals = {goal["name"]: goal for part in report["parts"].values() for goal in part["goals"]}
    # Counts do not depend on how busy the machine is.
    assert goals["steps to the first token, turn of 16 tokens after 100"]["measured"] == 1
    assert goals["computed beside the new tokens, branch of 48 tokens after 200"]["met"]
    assert goals["swap over recompute at 200 tokens"]["met"]
    assert report["machine"]["model"].endswith(".gguf")
    assert "Measuring turns" in done.stderr
    kept = {path.name for path in (tmp_path / "kept").iterdir()}
    assert kept == {"paging.md", "paging.json", "paging-turns.svg", "paging-swap.svg"}
    assert json.loads((tmp_path / "kept" / "paging.json").read_text()) == report
    assert "![swap](paging-swap.svg)" in (tmp_path / "kept" / "paging.md").read_text()


def test_bench_refuses_what_is_not_there(tmp_path: Path) -> None:
    done = _run(["bench", "--only", "everything", "--json"])
    assert done.returncode == 2
    assert "everything" in json.loads(done.stdout)["error"]["message"]
    assert _run(["bench", "--model", str(tmp_path / "none.gguf")]).returncode == 3


def test_doctor_without_a_model(tmp_path: Path) -> None:
    done = _run(["doctor", "--json", "--model", str(tmp_path / "none.gguf")])
    assert done.returncode == 3
    assert json.loads(done.stdout)["error"]["type"] == "ModelLoadError"


def test_doctor_with_a_damaged_model(tmp_path: Path) -> None:
    model = tmp_path / "damaged.gguf"
    model.write_bytes(b"GGUF" + bytes(500))
    done = _run(["doctor", "--json", "--model", str(model)])
    assert done.returncode == 1
    report = json.loads(done.stdout)
    assert report["ok"] is False
    assert report["self_test"]["error"]


def test_pipe_of_questions(tmp_path: Path) -> None:
    done = _run(
        ["chat", "--temperature", "0", "--max-tokens", "24", "--json"],
        "What is the capital of France?\nAnd of Germany?\n",
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0
    assert len(answers) == 2
    assert "Paris" in answers[0]["text"]
    assert answers[1]["prompt_tokens"] > answers[0]["prompt_tokens"]


def test_interrupted_while_loading(tmp_path: Path) -> None:
    process = subprocess.Popen([*OCTAVO, *PARIS], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    # Somewhere in the second half of its start.
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(1.0)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in err


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_conversation_in_a_terminal() -> None:
    """Streams, Ctrl+C stops the answer and not the program, Ctrl+D leaves."""
    terminal = _Terminal([*OCTAVO, "chat", "--temperature", "0"])
    terminal.expect(r"Ctrl\+D leaves")
    terminal.expect("> ")
    terminal.type("What is the capital of France?\n")
    terminal.expect("Paris")
    terminal.expect("> ")
    terminal.type("Count from one to five hundred, in words, one line each.\n")
    terminal.expect(r"\n.*\w+.*\w+")
    terminal.type("\x03")
    terminal.expect(r"\n> ")
    terminal.type("\x04")
    assert terminal.end() == 0
    assert "Traceback" not in terminal.seen


class _Terminal:
    """A program on a pseudo-terminal."""

    def __init__(self, command: list[str]) -> None:
        self._master, slave = pty.openpty()
        self._process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
        os.close(slave)
        self.seen = ""
        self._read_to = 0

    def type(self, text: str) -> None:
        if text == "\x03":
            # The terminal is not the session's own, so the key has to be delivered.
            self._process.send_signal(signal.SIGINT)
        else:
            os.write(self._master, text.encode())

    def expect(self, pattern: str) -> None:
        """Read until something new matches."""
        deadline = time.monotonic() + 60
        while (found := re.search(pattern, self.seen[self._read_to :])) is None:
            ready, _, _ = select.select([self._master], [], [], deadline - time.monotonic())
            assert ready, f"{pattern} did not appear: {self.seen[self._read_to :]!r}"
            self.seen += os.read(self._master, 4096).decode(errors="replace")
        self._read_to += found.end()

    def end(self) -> int:
        code = self._process.wait(30)
        os.close(self._master)
        return code


def _run(arguments: list[str], given: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run([*OCTAVO, *arguments], input=given, capture_output=True, text=True, check=False, timeout=100)


def _files(roots: list[Path]) -> set[Path]:
    return {path for root in roots for path in root.rglob("*")}
