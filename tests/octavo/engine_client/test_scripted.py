"""Scripts for the engine without a model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from octavo.engine_client import GenerationRequest, Message, ScriptError, scripted_engine


def _ask(name: str, question: str) -> str:
    engine = scripted_engine(name)
    try:
        return engine.submit(GenerationRequest(messages=[Message("user", question)])).result(20).text
    finally:
        engine.close()


def test_answers_by_question(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"answers": {"Hi": "Ho"}, "default": "?", "tokens_per_second": 5_000}))
    assert (_ask(f"fake:{script}", "Hi"), _ask(f"fake:{script}", "Other")) == ("Ho", "?")


def test_text_alone_and_no_script(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text('"Always this"')
    assert _ask(f"fake:{script}", "Hi") == "Always this"
    assert _ask("fake", "Hi")


@pytest.mark.parametrize(
    ("content", "words"), [("{", "not JSON"), ("[1]", "text or an object"), ('{"speed": 1}', "unknown keys: speed")]
)
def test_unusable_scripts_say_why(tmp_path: Path, content: str, words: str) -> None:
    script = tmp_path / "script.json"
    script.write_text(content)
    with pytest.raises(ScriptError, match=words):
        scripted_engine(f"fake:{script}")


def test_missing_script(tmp_path: Path) -> None:
    with pytest.raises(ScriptError, match="cannot be read"):
        scripted_engine(f"fake:{tmp_path / 'none.json'}")


def test_no_such_engine() -> None:
    with pytest.raises(ScriptError, match="no engine real"):
        scripted_engine("real")
