"""An engine that answers from a script, for trying the window without a model: `--engine fake[:SCRIPT.json]`.

The script is a JSON object with any of: `answers` (question to answer), `default` (answer to every other question),
`tokens_per_second`, `ttft` (seconds), `pages`, `fail_at` (output position); or only a text, the answer to everything.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from octavo_engine import Engine, FakeEngine, GenerationRequest, Message

_DEFAULT = "This engine has no model."
_NUMBERS = ("tokens_per_second", "ttft", "pages", "fail_at")


class ScriptError(ValueError):
    """The script cannot be used; the message is for people."""


def scripted_engine(name: str = "fake") -> Engine:
    """The engine that `name` means: "fake", or "fake:" and the path of a script. Raises ScriptError."""
    content = read_script(name)
    answers: Mapping[str, str] = content.get("answers", {})
    default: str = content.get("default", _DEFAULT)

    def answer(request: GenerationRequest) -> str:
        messages = [Message.of(message) for message in request.messages or ()]
        return answers.get(str(messages[-1].content), default) if messages else default

    return FakeEngine(answer, **{name: content[name] for name in _NUMBERS if name in content})


def read_script(name: str) -> Mapping[str, Any]:
    """The script of the engine that `name` means, checked. Raises ScriptError."""
    kind, _, script = name.partition(":")
    if kind != "fake":
        raise ScriptError(f"There is no engine {name}; fake[:SCRIPT.json] is one.")
    content = _read(Path(script)) if script else {}
    if isinstance(content, str):
        return {"default": content}
    unknown = set(content) - {"answers", "default", *_NUMBERS}
    if unknown:
        raise ScriptError(f"The script {script} has unknown keys: {', '.join(sorted(unknown))}.")
    return content


def _read(script: Path) -> str | dict[str, Any]:
    try:
        content = json.loads(script.read_text(encoding="utf-8"))
    except OSError as fault:
        raise ScriptError(f"The script {script} cannot be read: {fault.strerror}.") from fault
    except ValueError as fault:
        raise ScriptError(f"The script {script} is not JSON: {fault}.") from fault
    if not isinstance(content, str | dict):
        raise ScriptError(f"The script {script} must hold a text or an object.")
    return content
