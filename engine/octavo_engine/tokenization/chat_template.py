"""Renders conversations with a model's Jinja template, in a sandbox, keeping message text apart from control tokens."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NoReturn

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment

from octavo_engine.errors import TemplateError
from octavo_engine.request import Message

# Unicode noncharacters: never part of interchanged text (Unicode standard, section 23.7).
_MARKERS = tuple(chr(code) for code in range(0xFDD0, 0xFDF0))
_NEEDED_MARKERS = 3


@dataclass(frozen=True, slots=True)
class Rendered:
    """A conversation as text, with characters in it that no message holds.

    Attributes:
        text: what the template made.
        guard: stands inside control tokens that messages spell out, so that they are not recognised.
        opening, closing: the brackets around contents that were to be bracketed.
    """

    text: str
    guard: str
    opening: str
    closing: str


class ChatTemplate:
    """One compiled template.

    A control token that a message's text spells out gets a marker character inside before rendering, so that it is not
    recognised as a token afterwards; `Rendered.guard` is to be removed from the text between control tokens.
    """

    def __init__(self, source: str, control_tokens: Sequence[str], variables: Mapping[str, str]) -> None:
        """Compile `source`; `variables` are given to it at each rendering (bos_token, eos_token).

        Raises:
            TemplateError: the template has a syntax error, on the line that the message names.
        """
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
        )
        environment.filters["tojson"] = _to_json
        environment.globals["raise_exception"] = _raise
        environment.globals["strftime_now"] = _strftime_now
        self._control_tokens = tuple(sorted(control_tokens, key=len, reverse=True))
        self._variables = dict(variables)
        try:
            self._template = environment.from_string(source)
        except jinja2.TemplateSyntaxError as fault:
            raise TemplateError(
                f"The chat template of this model is broken in line {fault.lineno}: {fault.message}; choose another."
            ) from fault

    def render(
        self,
        messages: Sequence[Message],
        *,
        generation_prompt: bool,
        options: Mapping[str, Any],
        bracketed: Collection[int] = (),
    ) -> Rendered:
        """The conversation as one text; the contents of the messages with the numbers `bracketed` stand in brackets.

        Raises:
            TemplateError: the template rejects these messages or fails on them.
        """
        guard, opening, closing = self._free_markers(messages)
        shown = [self._as_dict(message, guard) for message in messages]
        for number in bracketed:
            shown[number]["content"] = f"{opening}{shown[number]['content']}{closing}"
        try:
            text = self._template.render(
                messages=shown, add_generation_prompt=generation_prompt, **{**self._variables, **options}
            )
        except jinja2.TemplateError as fault:
            raise TemplateError(f"The chat template of this model rejects the conversation: {fault}") from fault
        except (TypeError, ValueError, KeyError, OverflowError, RecursionError) as fault:
            raise TemplateError(f"The chat template of this model fails on this conversation: {fault}") from fault
        return Rendered(text, guard, opening, closing)

    @staticmethod
    def _free_markers(messages: Sequence[Message]) -> Sequence[str]:
        used = set().union(*(set(f"{message.content}{message.reasoning}") for message in messages))
        free = [marker for marker in _MARKERS if marker not in used]
        if len(free) < _NEEDED_MARKERS:
            raise TemplateError("A message holds all of Unicode's noncharacters, so that none is left as a marker.")
        return free[:_NEEDED_MARKERS]

    def _as_dict(self, message: Message, marker: str) -> dict[str, Any]:
        shown: dict[str, Any] = {"role": message.role, "content": self._guarded(str(message.content), marker)}
        if message.reasoning:
            shown["reasoning_content"] = self._guarded(message.reasoning, marker)
        if message.name is not None:
            shown["name"] = self._guarded(message.name, marker)
        return shown

    def _guarded(self, text: str, marker: str) -> str:
        for token in self._control_tokens:
            if token in text:
                text = text.replace(token, token[:1] + marker + token[1:])
        return text


def _raise(message: str) -> NoReturn:
    raise jinja2.TemplateError(message)


def _strftime_now(pattern: str) -> str:
    return datetime.now().astimezone().strftime(pattern)


def _to_json(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)
