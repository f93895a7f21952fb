"""jinja2's sandbox with the filters and functions that chat templates use, each paid for from the rendering's budget.

Text, loops, joined and literal values are paid for by filters that `Metering` puts into the parsed template; operators,
calls and filters where they are carried out. What is left out (urlize, wordwrap, lipsum, ...) no chat template uses.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NoReturn

import jinja2
from jinja2 import nodes
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension
from jinja2.filters import FILTERS
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

from octavo_engine.tokenization.template_budget import MAX_ELEMENTS, TemplateTooCostly, budget_now, size_of

# fmt: off
_FILTERS = (
    "abs", "attr", "batch", "capitalize", "count", "d", "default", "dictsort", "e", "escape", "first", "float",
    "format", "groupby", "indent", "int", "items", "join", "last", "length", "list", "lower", "map", "max", "min",
    "reject", "rejectattr", "replace", "reverse", "round", "safe", "select", "selectattr", "sort", "string", "sum",
    "trim", "truncate", "unique", "upper",
)
_TEXT_METHODS = frozenset({
    "capitalize", "casefold", "center", "count", "endswith", "find", "format", "index", "isalnum", "isalpha", "isascii",
    "isdecimal", "isdigit", "isidentifier", "islower", "isnumeric", "isspace", "istitle", "isupper", "join", "ljust",
    "lower", "lstrip", "partition", "removeprefix", "removesuffix", "replace", "rfind", "rindex", "rjust", "rpartition",
    "rsplit", "rstrip", "split", "splitlines", "startswith", "strip", "swapcase", "title", "upper", "zfill",
})
# fmt: on
# How repr and json.dumps spell the noncharacters that mark guarded text.
_ESCAPED_MARKER = re.compile(r"\\ufd([de][0-9a-f])")
_MAX_NUMBER = 10_000
_MAX_BITS = 4_096
_MAX_DIGITS = 4_000
# Widths and precisions of four digits and more, taken from arguments, or nested.
_WIDE_FORMAT = re.compile(r"\d{4}|%[^a-zA-Z]*\*|\{[^{}]*\{")


class TemplateSandbox(ImmutableSandboxedEnvironment):
    """The environment of all chat templates."""

    intercepted_binops = frozenset({"+", "*", "**", "%"})

    def __init__(self) -> None:
        # Unoptimised: constants would be computed while compiling, before there is a budget.
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            optimized=False,
            extensions=["jinja2.ext.loopcontrols", _GenerationBlocks],
        )
        self.filters = {name: _metered(FILTERS[name], _CHECKS.get(name)) for name in _FILTERS}
        # jinja2's own takes the text apart into words.
        self.filters["title"] = _metered(lambda text: str(text).title(), None)
        self.filters["string"] = _metered(_text, _check_text)
        self.filters["tojson"] = _metered(_to_json, None)
        self.filters |= {"_shown": _shown, "_made": _made, "_joined": _joined, "_counted": _counted}
        self.globals = {name: self.globals[name] for name in ("range", "dict", "cycler", "joiner", "namespace")}
        self.globals["raise_exception"] = _raise
        self.globals["strftime_now"] = _strftime_now

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """Check the size of what an operator makes before it does."""
        _check_operands(operator, left, right)
        return super().call_binop(context, operator, left, right)

    def call(__self, __context: Any, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805 (jinja2's names)
        """Call a function or method from a template, at the price of a step and of its result."""
        budget_now().step()
        if isinstance(owner := getattr(__obj, "__self__", None), str | bytes | int | float):
            args = _checked_method(owner, __obj.__name__, args)
        result = super().call(__context, __obj, *args, **kwargs)
        return _made(result)

    def wrap_str_format(self, value: Any) -> Any:
        """Refuse formats with widths that make text out of nothing."""
        wrapped = super().wrap_str_format(value)
        if wrapped is not None:
            _check_format(value.__self__)
        return wrapped


class Metering(NodeTransformer):
    """Puts the price of text, loops and values into a parsed template."""

    def visit_Output(self, node: nodes.Output) -> nodes.Node:  # noqa: N802 (jinja2's names, as below)
        """Text and values that are shown."""
        self.generic_visit(node)
        node.nodes = [
            _filtered(
                "_shown", nodes.Const(part.data, lineno=part.lineno) if isinstance(part, nodes.TemplateData) else part
            )
            for part in node.nodes
        ]
        return node

    def visit_For(self, node: nodes.For) -> nodes.Node:  # noqa: N802
        """Turns of a loop."""
        self.generic_visit(node)
        node.iter = _filtered("_counted", node.iter)
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802
        """Values joined with a tilde."""
        self.generic_visit(node)
        return _filtered("_joined", nodes.List(node.nodes, lineno=node.lineno))

    def visit_List(self, node: nodes.List) -> nodes.Node:  # noqa: N802
        """Lists that hold more than constants."""
        return self._literal(node, node.items)

    def visit_Tuple(self, node: nodes.Tuple) -> nodes.Node:  # noqa: N802
        """Tuples that hold more than constants."""
        return self._literal(node, node.items) if node.ctx == "load" else node

    def visit_Dict(self, node: nodes.Dict) -> nodes.Node:  # noqa: N802
        """Dicts that hold more than constants."""
        return self._literal(node, [pair.value for pair in node.items])

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:  # noqa: N802
        """Parts of texts and lists."""
        self.generic_visit(node)
        return _filtered("_made", node) if isinstance(node.arg, nodes.Slice) else node

    def _literal(self, node: nodes.Expr, items: Sequence[nodes.Expr]) -> nodes.Node:
        self.generic_visit(node)
        return node if all(isinstance(item, nodes.Const) for item in items) else _filtered("_made", node)


def _filtered(name: str, node: nodes.Node) -> nodes.Filter:
    assert isinstance(node, nodes.Expr)
    return nodes.Filter(node, name, [], [], None, None, lineno=node.lineno)


class _GenerationBlocks(Extension):
    """{% generation %} ... {% endgeneration %}, which marks answers for training; here just what stands inside."""

    tags = {"generation"}  # noqa: RUF012 (jinja2's declaration)

    def parse(self, parser: Parser) -> list[nodes.Node]:
        """The statements of the block."""
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _shown(value: Any) -> Any:
    budget_now().spend(size_of(value))
    return _text(value) if isinstance(value, list | tuple | Mapping) else value


def _made(value: Any) -> Any:
    if isinstance(value, str | bytes):
        budget_now().spend(len(value))
    elif isinstance(value, list | tuple | dict):
        # Its parts are there already; the walk over them costs time.
        size_of(value)
        budget_now().spend(len(value))
    return value


def _joined(values: Sequence[Any]) -> str:
    budget_now().spend(sum(map(size_of, values)))
    return "".join(map(_text, values))


def _text(value: Any) -> str:
    """The text of a value; Python's way to show lists and dicts escapes the marks in guarded text."""
    text = str(value)
    return text if isinstance(value, str) else _ESCAPED_MARKER.sub(_marker, text)


def _marker(found: re.Match[str]) -> str:
    return chr(int("fd" + found[1], 16))


def _counted(values: Iterable[Any]) -> Iterator[Any]:
    budget = budget_now()
    for value in values:
        budget.step()
        yield value


def _metered(function: Callable[..., Any], check: Callable[..., None] | None) -> Callable[..., Any]:
    """A filter that counts as a step, takes no enormous numbers and values, and pays for its result."""
    skipped = 1 if hasattr(function, "jinja_pass_arg") else 0

    @functools.wraps(function)
    def metered(*args: Any, **kwargs: Any) -> Any:
        budget_now().step()
        size_of(args[skipped])
        for argument in (*args[skipped + 1 :], *kwargs.values()):
            if isinstance(argument, int) and abs(argument) > _MAX_NUMBER:
                raise TemplateTooCostly(f"it asks for {argument:,} of something")
        if check is not None:
            check(*args[skipped:], **kwargs)
        return _made(function(*args, **kwargs))

    return metered


def _check_operands(operator: str, left: Any, right: Any) -> None:
    if operator == "%":
        if isinstance(left, str | bytes):
            _check_format(str(left))
            budget_now().spend(len(left) + size_of(right))
    elif operator == "+":
        if isinstance(left, str | list | tuple) and isinstance(right, str | list | tuple):
            budget_now().spend(len(left) + len(right))
            if not isinstance(left, str) and len(left) + len(right) > _MAX_NUMBER:
                raise TemplateTooCostly("it makes a list without measure")
    elif isinstance(left, int) and isinstance(right, int):
        bits = left.bit_length() + right.bit_length() if operator == "*" else left.bit_length() * max(right, 0)
        if bits > _MAX_BITS:
            raise TemplateTooCostly("it computes a number without measure")
    elif operator == "*":
        for text, count in ((left, right), (right, left)):
            if isinstance(text, str | bytes) and isinstance(count, int):
                budget_now().spend(len(text) * max(count, 0))
            elif isinstance(text, list | tuple):
                raise TemplateTooCostly("it repeats a list")


def _check_format(text: str) -> None:
    if _WIDE_FORMAT.search(text):
        raise SecurityError("it uses a format with a width that is not allowed")


def _checked_method(owner: Any, name: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
    if not isinstance(owner, str) or name not in _TEXT_METHODS:
        raise SecurityError(f"the method {name} of {type(owner).__name__} is not allowed in templates")
    if name == "replace":
        _check_replace(owner, *args)
    elif name in ("split", "rsplit") and args and isinstance(args[0], str) and owner.count(args[0]) > MAX_ELEMENTS:
        raise TemplateTooCostly("it makes a list without measure")
    elif name == "join" and len(args) == 1:
        args = (list(args[0]),)
        _check_join(args[0], owner)
    elif name in ("center", "ljust", "rjust", "zfill") and args and isinstance(args[0], int) and args[0] > _MAX_NUMBER:
        raise TemplateTooCostly(f"it asks for {args[0]:,} of something")
    return args


def _check_replace(text: Any, old: Any = "", new: Any = "", *_: Any, **__: Any) -> None:
    if isinstance(old, str) and isinstance(new, str):
        budget_now().spend(str(text).count(old) * len(new))


def _check_join(values: Any, between: Any = "", *_: Any, **__: Any) -> None:
    if isinstance(values, list | tuple):
        budget_now().spend(size_of(values) + len(values) * size_of(between))


def _check_indent(text: Any, width: Any = 4, *_: Any, **__: Any) -> None:
    budget_now().spend((str(text).count("\n") + 1) * (width if isinstance(width, int) else size_of(width)))


def _check_int(value: Any, *_: Any, **__: Any) -> None:
    if isinstance(value, str) and len(value) > _MAX_DIGITS:
        raise TemplateTooCostly("it computes a number without measure")


def _check_sum(_values: Any, _attribute: Any = None, start: Any = 0, **_: Any) -> None:
    if not isinstance(start, int | float):
        raise SecurityError("it sums up something else than numbers")


def _check_text(value: Any, *_: Any, **__: Any) -> None:
    budget_now().spend(size_of(value))


def _check_format_filter(text: Any, *args: Any, **kwargs: Any) -> None:
    _check_format(str(text))
    budget_now().spend(size_of([*args, *kwargs.values()]))


_CHECKS: Mapping[str, Callable[..., None]] = {
    "replace": _check_replace,
    "join": _check_join,
    "indent": _check_indent,
    "int": _check_int,
    "sum": _check_sum,
    "string": _check_text,
    "format": _check_format_filter,
}


def _raise(message: str) -> NoReturn:
    raise jinja2.TemplateError(message)


def _strftime_now(pattern: str) -> str:
    if len(pattern) > 1_000:
        raise TemplateTooCostly("it asks for a date without measure")
    return datetime.now().astimezone().strftime(pattern)


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """JSON as transformers' templates get it: not escaped for HTML."""
    if isinstance(indent, str) and len(indent) > _MAX_BITS:
        raise TemplateTooCostly("it asks for an indent without measure")
    budget_now().spend(size_of(value))
    between = (separators[0], separators[1]) if separators else None
    text = json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=between, sort_keys=sort_keys)
    if ensure_ascii:
        text = _ESCAPED_MARKER.sub(_marker, text)
    return text
