"""`packaging/dev.py` on a machine where everything is there already."""

from __future__ import annotations

import ast
import subprocess
import sys
import time
from pathlib import Path

import pytest

import dev
from octavo_dev.lock import Lock, normalised
from octavo_dev.long_report import read_results, write_report
from octavo_dev.progress import human_bytes
from octavo_dev.stamp import Stamp, fingerprint, folder_fingerprint

BASE_PYTHON = Path(getattr(sys, "_base_executable", sys.executable))


def _script_files(root: Path) -> list[Path]:
    return [root / "packaging" / "dev.py", *(root / "packaging" / "octavo_dev").glob("*.py")]


def test_script_needs_only_the_standard_library_of_python_311(root: Path) -> None:
    for path in _script_files(root):
        tree = ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 11))
        for node in ast.walk(tree):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                modules = [node.module or ""]
            for module in modules:
                top = module.split(".", 1)[0]
                assert top in sys.stdlib_module_names or top == "octavo_dev", f"{path.name} imports {module}"


@pytest.mark.timeout(300)
def test_set_up_with_nothing_to_do_takes_less_than_a_second(root: Path) -> None:
    command = [str(BASE_PYTHON), str(root / "packaging" / "dev.py"), "setup"]
    subprocess.run(command, capture_output=True, check=True)
    durations = []
    for _ in range(3):
        start = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        durations.append(time.perf_counter() - start)
        assert done.stdout == "Nothing to do: everything is set up.\n"
    # The fastest of three: other programs may use the machine meanwhile.
    assert min(durations) < 1.0


def test_unknown_command_is_a_usage_error(root: Path) -> None:
    done = subprocess.run(
        [BASE_PYTHON, root / "packaging" / "dev.py", "fly"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "fly" in done.stderr


@pytest.mark.parametrize(
    ("typed", "passed_on"),
    [
        ("run chat --prompt hello --json -h", "chat --prompt hello --json -h"),
        ("run -- --seed 1 model.gguf", "--seed 1 model.gguf"),
        ("test -k pages --long tests/project -x --lf", "-k pages tests/project -x --lf"),
        ("bench --json", "--json"),
    ],
)
def test_arguments_are_passed_on_as_they_are(typed: str, passed_on: str) -> None:
    options, rest = dev.parse(typed.split())
    assert rest == passed_on.split()
    assert getattr(options, "long", False) == ("--long" in typed)


def test_command_that_passes_nothing_on_refuses_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ending:
        dev.parse(["check", "everything"])
    assert ending.value.code == 2
    assert "check takes no everything" in capsys.readouterr().err


def test_stamp_holds_for_its_inputs_only(tmp_path: Path) -> None:
    source = tmp_path / "lock"
    source.write_text("a==1")
    stamp = Stamp(tmp_path / "stamps" / "step")
    assert not stamp.matches(fingerprint(source))
    stamp.write(fingerprint(source))
    assert stamp.matches(fingerprint(source))
    source.write_text("a==2")
    assert not stamp.matches(fingerprint(source))


def test_fingerprints_tell_boundaries_and_names_apart(tmp_path: Path) -> None:
    assert fingerprint("ab", "c") != fingerprint("a", "bc")
    (tmp_path / "a.py").write_text("1")
    before = folder_fingerprint(tmp_path, "*.py")
    (tmp_path / "a.py").rename(tmp_path / "b.py")
    assert folder_fingerprint(tmp_path, "*.py") != before


def test_locked_lines_are_whole_entries(tmp_path: Path) -> None:
    lock = tmp_path / "some.lock"
    lock.write_text(
        "# made\npip==26.3 ; m \\\n    --hash=sha256:aa\n    # via x\npip-tools==1 \\\n    --hash=sha256:bb\n"
    )
    assert Lock(lock).entries(("pip",)) == "pip==26.3 ; m \\\n    --hash=sha256:aa\n"
    assert Lock(lock).names() == {"pip", "pip-tools"}


def test_names_are_compared_as_locks_spell_them() -> None:
    assert normalised("Typing_Extensions") == "typing-extensions"


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 bytes"), (999, "999 bytes"), (98_362_432, "98.4 MB"), (3_100_000_000, "3.10 GB")]
)
def test_bytes_are_told_in_powers_of_ten(count: int, text: str) -> None:
    assert human_bytes(count) == text


def test_page_of_long_tests_names_failures_first(tmp_path: Path, root: Path) -> None:
    junit = tmp_path / "results.xml"
    junit.write_text(
        '<testsuites><testsuite><testcase classname="a" name="slow" time="9.5"/>'
        '<testcase classname="a" name="bad" time="0.1"><failure/></testcase>'
        '<testcase classname="a" name="none" time="0"><skipped/></testcase></testsuite></testsuites>'
    )
    page = tmp_path / "docs" / "page.md"
    write_report(read_results(junit), page, root)
    text = page.read_text(encoding="utf-8")
    assert "1 passed, 1 failed, 1 skipped." in text
    assert text.index("a::bad | failed | 0.1") < text.index("a::slow | passed | 9.5")
