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


def scripted_engine(script: Path | None = None) -> Engine:
    """An engine that answers from `script`. Raises ScriptError."""
    content = _read(script) if script is not None else {}
    if isinstance(content, str):
        content = {"default": content}
    unknown = set(content) - {"answers", "default", *_NUMBERS}
    if unknown:
        raise ScriptError(f"The script {script} has unknown keys: {', '.join(sorted(unknown))}.")
    answers: Mapping[str, str] = content.get("answers", {})
    default: str = content.get("default", _DEFAULT)

    def answer(request: GenerationRequest) -> str:
        messages = [Message.of(message) for message in request.messages or ()]
        return answers.get(str(messages[-1].content), default) if messages else default

    return FakeEngine(answer, **{name: content[name] for name in _NUMBERS if name in content})


def _read(script: Path) -> Any:
    try:
        content = json.loads(script.read_text(encoding="utf-8"))
    except OSError as fault:
        raise ScriptError(f"The script {script} cannot be read: {fault.strerror}.") from fault
    except ValueError as fault:
        raise ScriptError(f"The script {script} is not JSON: {fault}.") from fault
    if not isinstance(content, str | dict):
        raise ScriptError(f"The script {script} must hold a text or an object.")
    return content
