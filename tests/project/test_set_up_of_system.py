"""What the set-up does about the system: libraries that are missing, and a machine without a display."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from octavo_dev import debian
from octavo_dev.display import has_display
from octavo_dev.setup_error import SetupError

MISSING = ("libegl1", "libxcb-cursor0")


def _fake_dpkg(folder: Path, listed: str) -> None:
    """A dpkg-query that prints `listed` and, like the real one asked for a name that it does not know, ends with 1."""
    program = folder / "dpkg-query"
    program.write_text(f"#!/bin/sh\nprintf '%s' '{listed}'\nexit 1\n")
    program.chmod(0o755)


def test_only_what_dpkg_calls_installed_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _fake_dpkg(tmp_path, "installed libgl1 \nconfig-files libegl1 \nnot-installed libgomp1 \n")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    missing = debian.missing_packages()
    assert "libgl1" not in missing
    assert {"libegl1", "libgomp1"} <= set(missing)


def test_renamed_library_counts_for_the_name_that_it_provides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _fake_dpkg(tmp_path, "installed libglib2.0-0t64 libglib2.0-0 (= 2.80.0)\n")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert "libglib2.0-0" not in debian.missing_packages()


def test_machine_without_dpkg_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert debian.SystemLibraries().is_done()


def test_user_without_root_gets_the_one_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(debian, "missing_packages", lambda: MISSING)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(SetupError, match="sudo apt-get install --yes --no-install-recommends libegl1 libxcb-cursor0"):
        debian.SystemLibraries().run()


def test_failing_apt_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    apt = tmp_path / "apt-get"
    apt.write_text("#!/bin/sh\necho 'E: Unable to fetch some archives' >&2\nexit 100\n")
    apt.chmod(0o755)
    monkeypatch.setattr(debian, "missing_packages", lambda: MISSING)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(SetupError, match=r"`apt-get update` failed: E: Unable to fetch some archives\."):
        debian.SystemLibraries().run()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems always have a display")
@pytest.mark.parametrize("name", ["DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"])
def test_display_is_found_by_the_variables_that_qt_reads(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for other in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(other, raising=False)
    assert not has_display()
    monkeypatch.setenv(name, "something")
    assert has_display()


@pytest.mark.skipif(os.name == "nt", reason="the stand-in is a shell script")
@pytest.mark.parametrize(
    ("display", "typed", "received"),
    [
        (":0", [], ""),
        (":0", ["notes.gguf"], "notes.gguf"),
        ("", [], "chat"),
        ("", ["--seed", "1"], "chat --seed 1"),
        ("", ["doctor", "--json"], "doctor --json"),
    ],
)
def test_run_starts_the_window_or_talks_in_the_terminal(
    display: str, typed: list[str], received: str, root: Path, tmp_path: Path
) -> None:
    program = tmp_path / ".venv" / "bin" / "octavo"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\necho "got: $*"\nexit 7\n')
    program.chmod(0o755)
    code = (
        "import sys; from pathlib import Path\n"
        "from octavo_dev.commands import run; from octavo_dev.project_tree import ProjectTree\n"
        f"sys.exit(run(ProjectTree(Path({str(tmp_path)!r})), sys.argv[1:]))"
    )
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(root / "packaging"), "DISPLAY": display}
    done = subprocess.run(
        [sys.executable, "-c", code, *typed], env=environment, capture_output=True, text=True, check=False
    )
    lines = done.stdout.splitlines()
    assert lines[-1].strip() == f"got: {received}".strip()
    assert done.returncode == 7
    assert ("No display here" in lines[0]) == received.startswith("chat")
