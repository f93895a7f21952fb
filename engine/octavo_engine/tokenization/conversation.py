"""Messages and tools as chat templates expect them: plain dicts and lists. Knows no template."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from typing import Any

from octavo_engine.errors import TemplateError
from octavo_engine.request import Message

# Deeper values than any tool's schema would exhaust the stack.
_MAX_DEPTH = 100


def message_values(message: Message, *, as_parts: bool) -> dict[str, Any]:
    """One message by the names that templates use; its content as a list of parts where `as_parts`."""
    shown: dict[str, Any] = {"role": message.role, "content": _content(message.content, as_parts)}
    if message.reasoning:
        shown["reasoning_content"] = message.reasoning
    if message.tool_calls:
        shown["tool_calls"] = [_tool_call(call) for call in message.tool_calls]
    if message.tool_call_id is not None:
        shown["tool_call_id"] = message.tool_call_id
    if message.name is not None:
        shown["name"] = message.name
    return shown


def plain_value(value: Any, change: Callable[[str], str], depth: int = 0) -> Any:
    """A value of dicts, lists and texts, with `change` applied to each text in it, keys too.

    Raises:
        TemplateError: it is nested without measure.
    """
    if depth > _MAX_DEPTH:
        raise TemplateError("A message or tool is nested too deeply for a chat template.")
    if isinstance(value, str):
        return change(value)
    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    if isinstance(value, Mapping):
        return {
            (change(key) if isinstance(key, str) else key): plain_value(part, change, depth + 1)
            for key, part in value.items()
        }
    if isinstance(value, list | tuple):
        return [plain_value(part, change, depth + 1) for part in value]
    return value


def text_size(value: Any) -> int:
    """The characters in a value of dicts, lists and texts."""
    size = 0
    rest = [value]
    while rest:
        part = rest.pop()
        if isinstance(part, str):
            size += len(part)
        elif isinstance(part, Mapping):
            rest += [*part.keys(), *part.values()]
        elif isinstance(part, list | tuple):
            rest += part
    return size


def _content(content: str | Sequence[Any] | None, as_parts: bool) -> Any:
    if content is None:
        return ""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if as_parts and content else content
    parts = [{"type": "text", "text": part} if isinstance(part, str) else part for part in content]
    if as_parts:
        return parts
    texts = [part.get("text") if isinstance(part, Mapping) else None for part in parts]
    if not all(isinstance(text, str) for text in texts):
        raise TemplateError("The chat template of this model takes text only; leave images and files out.")
    return "".join(str(text) for text in texts)


def _tool_call(call: Any) -> Any:
    """A call as {"type", "id", "function": {"name", "arguments"}}, with the arguments as a dict where they are one."""
    if is_dataclass(call) and not isinstance(call, type):
        call = asdict(call)
    if not isinstance(call, Mapping):
        return call
    function = call.get("function", call)
    if not isinstance(function, Mapping):
        return call
    arguments = function.get("arguments")
    shown: dict[str, Any] = {
        "type": "function",
        "function": {"name": function.get("name"), "arguments": _arguments(arguments)},
    }
    return shown if call.get("id") is None else {"id": call["id"], **shown}


def _arguments(arguments: Any) -> Any:
    if not isinstance(arguments, str):
        return {} if arguments is None else arguments
    try:
        parsed = json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments
    return parsed if isinstance(parsed, dict) else arguments
