"""Renders conversations with a model's Jinja template, in a sandbox, keeping message text apart from control tokens."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import jinja2
from jinja2 import nodes

from octavo_engine.errors import TemplateError
from octavo_engine.request import Message
from octavo_engine.tokenization.conversation import message_values, plain_value, text_size
from octavo_engine.tokenization.single_tokens import SingleTokens
from octavo_engine.tokenization.template_budget import TemplateTooCostly, begin_budget
from octavo_engine.tokenization.template_sandbox import Metering, TemplateSandbox

# Unicode noncharacters: never part of interchanged text (Unicode standard, section 23.7).
_MARKERS = tuple(chr(code) for code in range(0xFDD0, 0xFDF0))
_MAX_SOURCE = 1_000_000
_FILE = "<chat template>"
_ADVICE = "choose another template, or mend it"
# What a template's own mistakes end in; anything else is a fault of ours.
_FAULTS = (
    TypeError, ValueError, LookupError, ArithmeticError, AttributeError, RecursionError, MemoryError, AssertionError,
    SyntaxError,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Rendered:
    """A conversation as text.

    Attributes:
        parts: the text in order, cut around the contents that were to be bracketed: (text, None), or (text, number of
            the message that it is the content of).
        guard: a character that stands inside control tokens that messages spell out, so that they are not recognised.
    """

    parts: tuple[tuple[str, int | None], ...]
    guard: str

    @property
    def text(self) -> str:
        """All of it, with the guards."""
        return "".join(text for text, _ in self.parts)


@dataclass(frozen=True, slots=True)
class _Markers:
    """Characters that no message holds: the guard, and brackets around a content with its number in two digits."""

    guard: str
    opening: str
    zero: str
    one: str
    closing: str

    def bracketed(self, content: str, number: int) -> str:
        digits = f"{number:b}".replace("0", self.zero).replace("1", self.one)
        return f"{self.opening}{digits}{content}{self.closing}"

    def parts(self, text: str) -> tuple[tuple[str, int | None], ...]:
        pattern = f"{self.opening}([{self.zero}{self.one}]+)([^{self.opening}{self.closing}]*){self.closing}"
        parts: list[tuple[str, int | None]] = []
        start = 0
        for found in re.finditer(pattern, text):
            number = int(found[1].replace(self.zero, "0").replace(self.one, "1"), 2)
            parts += [(self.bare(text[start : found.start()]), None), (found[2], number)]
            start = found.end()
        return (*parts, (self.bare(text[start:]), None))

    def bare(self, text: str) -> str:
        for marker in (self.opening, self.zero, self.one, self.closing):
            text = text.replace(marker, "")
        return text


class ChatTemplate:
    """One compiled template.

    A control token that a message's text spells out gets a guard inside before rendering, so that it is not recognised
    as a token afterwards; `Rendered.guard` is to be removed from the text between control tokens.
    """

    def __init__(self, source: str, control_tokens: SingleTokens, variables: Mapping[str, str]) -> None:
        """Compile `source`; `variables` are given to it at each rendering (bos_token, eos_token).

        Raises:
            TemplateError: the template has a syntax error, on the line that the message names.
        """
        if len(source) > _MAX_SOURCE:
            raise TemplateError(
                f"The chat template has {len(source):,} characters; choose another.",
                needed=len(source),
                available=_MAX_SOURCE,
            )
        self._control_tokens = control_tokens
        self._variables = dict(variables)
        sandbox = TemplateSandbox()
        try:
            tree = sandbox.parse(source)
            self._wants_parts = _wants_parts(tree)
            tree = Metering().visit(tree).set_environment(sandbox)
            code = sandbox.compile(tree, filename=_FILE)
            self._template = sandbox.template_class.from_code(sandbox, code, sandbox.make_globals(None))
        except jinja2.TemplateSyntaxError as fault:
            raise TemplateError(
                f"The chat template is broken in line {fault.lineno}: {fault.message}; {_ADVICE}."
            ) from fault
        except _FAULTS as fault:
            raise TemplateError(
                f"The chat template cannot be read ({fault or type(fault).__name__}); {_ADVICE}."
            ) from fault

    def render(
        self,
        messages: Sequence[Message],
        *,
        generation_prompt: bool,
        options: Mapping[str, Any],
        tools: Sequence[Any] | None = None,
        bracketed: Collection[int] = (),
    ) -> Rendered:
        """The conversation as one text, cut around the contents of the messages with the numbers `bracketed`.

        A content that the template does not show unchanged is not cut out.

        Raises:
            TemplateError: the template rejects these messages, fails on them, or takes without measure.
        """
        values = [message_values(message, as_parts=self._wants_parts) for message in messages]
        given: dict[str, Any] = {"tools": list(tools) if tools else None, "documents": None, **options}
        markers = _free_markers([*values, given])

        def guarded(text: str) -> str:
            return self._control_tokens.guarded(text, markers.guard)

        shown = [plain_value(value, guarded) for value in values]
        given = plain_value(given, guarded)
        text = self._rendered(shown, given, generation_prompt)
        candidates = [
            number for number in bracketed if shown[number]["content"] and isinstance(shown[number]["content"], str)
        ]
        # A template that trims answers trims those that need it: the others are tried without them.
        for numbers in (candidates, [number for number in candidates if not _has_edges(shown[number]["content"])]):
            if not numbers:
                break
            marked = [dict(value) for value in shown]
            for number in numbers:
                marked[number]["content"] = markers.bracketed(shown[number]["content"], number)
            marked_text = self._rendered(marked, given, generation_prompt)
            if markers.bare(marked_text) == text:
                return Rendered(markers.parts(marked_text), markers.guard)
        return Rendered(((text, None),), markers.guard)

    def _rendered(self, messages: list[dict[str, Any]], given: Mapping[str, Any], generation_prompt: bool) -> str:
        begin_budget(text_size([messages, given]))
        values = {**self._variables, "messages": messages, "add_generation_prompt": generation_prompt, **given}
        try:
            return self._template.render(values)
        except TemplateTooCostly as fault:
            raise TemplateError(
                f"The chat template was stopped in {_line(fault)}: {fault}; choose another template, or mend it."
            ) from fault
        except (jinja2.UndefinedError, jinja2.TemplateRuntimeError) as fault:
            raise TemplateError(f"The chat template fails in {_line(fault)}: {fault}; {_ADVICE}.") from fault
        except jinja2.TemplateError as fault:
            raise TemplateError(f"The chat template of this model rejects the conversation: {fault}") from fault
        except _FAULTS as fault:
            words = str(fault) or type(fault).__name__
            raise TemplateError(f"The chat template fails in {_line(fault)}: {words}; {_ADVICE}.") from fault


def _free_markers(values: Sequence[Any]) -> _Markers:
    used: set[str] = set()

    def note(text: str) -> str:
        used.update(text)
        return text

    plain_value(list(values), note)
    free = [marker for marker in _MARKERS if marker not in used]
    if len(free) < 5:
        raise TemplateError("A message holds all of Unicode's noncharacters, so that none is left as a marker.")
    return _Markers(*free[:5])


def _has_edges(content: str) -> bool:
    return content != content.strip()


def _wants_parts(tree: nodes.Template) -> bool:
    """Whether the template goes over the parts of a content, and never asks whether it is a plain text."""
    if any(test.name == "string" for test in tree.find_all(nodes.Test)):
        return False
    return any(_names_content(loop.iter) for loop in tree.find_all(nodes.For))


def _names_content(node: nodes.Node) -> bool:
    if isinstance(node, nodes.Getattr):
        return node.attr == "content"
    return isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Const) and node.arg.value == "content"


def _line(fault: BaseException) -> str:
    """The line of the template that a fault came from."""
    line: int | None = None
    step: TracebackType | None = fault.__traceback__
    while step is not None:
        if step.tb_frame.f_code.co_filename == _FILE:
            line = step.tb_lineno
        step = step.tb_next
    return "an unknown line" if line is None else f"line {line}"
