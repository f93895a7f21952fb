"""Bad models and prompts at the command line: a typed error, a sentence that helps, the right code, no traceback."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import pytest

from octavo.cli import main

Capture = pytest.CaptureFixture[str]


def missing(_: Path, folder: Path) -> Path:
    return folder / "nowhere.gguf"


def truncated(starter: Path, folder: Path) -> Path:
    path = folder / "truncated.gguf"
    with starter.open("rb") as file:
        path.write_bytes(file.read(30_000_000))
    return path


def truncated_in_the_header(starter: Path, folder: Path) -> Path:
    path = folder / "header.gguf"
    with starter.open("rb") as file:
        path.write_bytes(file.read(10_000))
    return path


def text(_: Path, folder: Path) -> Path:
    path = folder / "notes.gguf"
    path.write_text("Dear diary, this is no model.\n" * 100)
    return path


def empty(_: Path, folder: Path) -> Path:
    path = folder / "empty.gguf"
    path.touch()
    return path


def unsupported(_: Path, folder: Path) -> Path:
    path = folder / "strange.gguf"
    writer = gguf.GGUFWriter(path, "strangeformer")
    writer.add_name("Strange")
    writer.add_block_count(1)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return path


TABLE: list[tuple[Callable[[Path, Path], Path], int, tuple[str, ...]]] = [
    (missing, 3, ("nowhere.gguf",)),
    (truncated, 1, ("cut short", "30,000,000")),
    (truncated_in_the_header, 1, ("damaged", "again")),
    (text, 1, ("text file", "GGUF")),
    (empty, 1, ("empty",)),
    (unsupported, 1, ("strangeformer", "llama")),
]


@pytest.mark.parametrize(("make", "code", "words"), TABLE, ids=[entry[0].__name__ for entry in TABLE])
def test_bad_model(
    make: Callable[[Path, Path], Path],
    code: int,
    words: tuple[str, ...],
    starter_model: Path,
    tmp_path: Path,
    capsys: Capture,
) -> None:
    path = make(starter_model, tmp_path)
    before = path.read_bytes() if path.exists() else None
    arguments = ["chat", "--model", str(path), "--prompt", "Hello"]

    assert main([*arguments, "--json"]) == code
    error = _error(capsys.readouterr().out)
    assert error["type"] == "ModelLoadError"
    assert all(word in error["message"] for word in words), error["message"]

    assert main(arguments) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.endswith(f"octavo: {error['message']}\n")
    assert "Traceback" not in err
    assert (path.read_bytes() if path.exists() else None) == before


def test_truncated_model_tells_how_much_is_missing(starter_model: Path, tmp_path: Path, capsys: Capture) -> None:
    path = truncated(starter_model, tmp_path)
    assert main(["chat", "--model", str(path), "--prompt", "Hello", "--json"]) == 1
    error = _error(capsys.readouterr().out)
    assert error["available"] == 30_000_000
    assert error["needed"] > error["available"]


def test_no_starter_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Capture) -> None:
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    assert main(["chat", "--prompt", "Hello", "--json"]) == 3
    assert "no model" in _error(capsys.readouterr().out)["message"]
    assert main(["chat", "--prompt", "Hello"]) == 3
    assert capsys.readouterr().err.startswith("octavo: There is no model")


def test_another_layout_and_template(starter_model: Path, tmp_path: Path, capsys: Capture) -> None:
    asked = ["chat", "--prompt", "Hello", "--max-tokens", "2", "--json"]
    assert main([*asked, "--weights", "int8", "--template", "chatml"]) == 0
    chatml = json.loads(capsys.readouterr().out)["prompt_tokens"]
    (tmp_path / "mine.jinja").write_text("{% for m in messages %}{{ m.content }}{% endfor %}")
    assert main([*asked, "--template", str(tmp_path / "mine.jinja")]) == 0
    assert json.loads(capsys.readouterr().out)["prompt_tokens"] < chatml
    assert main([*asked, "--template", "chatml3"]) == 1
    error = _error(capsys.readouterr().out)
    assert error["type"] == "TemplateError"
    assert "chatml" in error["message"]
    (tmp_path / "broken.jinja").write_text("one\n{% for m in %}")
    assert main([*asked, "--template", str(tmp_path / "broken.jinja")]) == 1
    assert "line 2" in _error(capsys.readouterr().out)["message"]


def test_prompt_longer_than_the_context(starter_model: Path, capsys: Capture) -> None:
    assert main(["chat", "--prompt", "word " * 9_000, "--max-tokens", "4", "--json"]) == 1
    error = _error(capsys.readouterr().out)
    assert error["type"] == "ContextOverflow"
    assert error["needed"] > error["available"] > 1_000


def test_model_of_the_user_is_found_by_name(
    starter_model: Path, octavo_home: Path, tmp_path: Path, capsys: Capture
) -> None:
    (octavo_home / "models").mkdir(parents=True)
    text(starter_model, octavo_home / "models")
    assert main(["chat", "--model", "NOTES", "--prompt", "Hello", "--json"]) == 1
    assert "text file" in _error(capsys.readouterr().out)["message"]


def _error(out: str) -> dict[str, Any]:
    (line,) = out.splitlines()
    content = json.loads(line)
    assert list(content) == ["error"]
    error: dict[str, Any] = content["error"]
    assert list(error) == ["type", "message", "needed", "available"]
    return error
