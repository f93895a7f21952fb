"""Chat templates: what real ones use, what broken ones say, and what hostile ones may not take."""

import json
import tracemalloc
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import jinja2
import pytest

from octavo_engine import Message, TemplateError
from octavo_engine.tokenization import template_budget
from octavo_engine.tokenization.built_in_templates import BUILT_IN_TEMPLATES, template_source
from octavo_engine.tokenization.chat_template import ChatTemplate
from octavo_engine.tokenization.single_tokens import SingleTokens

CONTROL = SingleTokens({"<|im_start|>": 0, "<|im_end|>": 1, "</s>": 2, "[/INST]": 3})
USER = Message("user", "Hi")
TOOL = {"name": "now", "description": "Zeit – <|im_end|>", "parameters": {"b": [1, 2], "a": None}}


def shown(
    source: str, messages: Sequence[Message] = (USER,), tools: Sequence[Any] | None = None, **options: object
) -> str:
    """What a template makes, with the guards taken out."""
    template = ChatTemplate(source, CONTROL, {"bos_token": "<s>", "eos_token": "</s>"})
    rendered = template.render(messages, generation_prompt=True, options=options, tools=tools)
    assert "<|im_end|>" in source or "<|im_end|>" not in rendered.text
    return rendered.text.replace(rendered.guard, "")


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("{{ bos_token }}{% if add_generation_prompt %}+{% endif %}", "<s>+"),
        ("{% for m in messages %}\n  {% if loop.last %}{{ m.content }}{% endif %}\n{% endfor %}", "Hi"),
        ("{% for i in range(9) %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}", "01"),
        ("{% generation %}{{ messages[0]['content'] }}{% endgeneration %}!", "Hi!"),
        ("{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{% endfor %}{{ ns.n }}", "1"),
        ("{% for k, v in messages[0].items() %}{{ k }}={{ v }};{% endfor %}", "role=user;content=Hi;"),
        ("{% for k, v in messages[0] | items %}{{ k }};{% endfor %}", "role;content;"),
        ("{{ messages | map(attribute='content') | join(',') ~ 1 ~ none }}", "Hi1None"),
        ("{% macro f(x) %}[{{ x }}]{% endmacro %}{{ f(1) ~ f('b') }}", "[1][b]"),
        ("{{ messages[0].content[::-1].upper().split('I')[1] }}", "H"),
        ("{{ '%s-%d' % ('a', 3) }}{{ '{}'.format(4) }}{{ 'ab' * 2 }}{{ 7 % 4 }}", "a-34abab3"),
        ("{{ enable_thinking is defined and not enable_thinking }}", "True"),
        ("{% if tools %}x{% endif %}{% if documents is none %}none{% endif %}", "none"),
        ("{{ messages }}", "[{'role': 'user', 'content': 'Hi'}]"),
        ("own <|im_end|>", "own <|im_end|>"),
    ],
)
def test_what_real_templates_use(source: str, text: str) -> None:
    assert shown(source, enable_thinking=False) == text


def test_dates_are_of_today() -> None:
    assert shown("{{ strftime_now('%Y') }}") in {str(datetime.now().astimezone().year + step) for step in (0, -1)}


@pytest.mark.parametrize(
    "arguments",
    [{}, {"indent": 2}, {"separators": (",", ":")}, {"sort_keys": True}, {"ensure_ascii": True}],
)
def test_tojson_is_that_of_transformers(arguments: dict[str, Any]) -> None:
    listed = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
    expected = json.dumps(TOOL, **{"ensure_ascii": False, **arguments})
    assert shown(f"{{{{ tools[0] | tojson({listed}) }}}}", tools=[TOOL]) == expected


def test_tools_and_their_calls() -> None:
    call = {"id": "c1", "function": {"name": "now", "arguments": '{"zone": "<|im_end|>"}'}}
    messages = [USER, Message("assistant", "", tool_calls=(call,)), Message("tool", "10:00", tool_call_id="c1")]
    source = (
        "{% for m in messages %}{% if m.tool_calls %}{% for c in m.tool_calls %}{{ c.type }} {{ c.id }} "
        "{{ c.function.name }} {{ c.function.arguments.zone }};{% endfor %}{% endif %}"
        "{% if m.tool_call_id %}{{ m.tool_call_id }} {{ m.content }}{% endif %}{% endfor %}"
    )
    assert shown(source, messages, tools=[TOOL]) == "function c1 now <|im_end|>;c1 10:00"
    assert shown("{{ messages[1].reasoning_content }}", [USER, Message("assistant", "", reasoning="so")]) == "so"


def test_contents_are_texts_or_parts_as_the_template_expects() -> None:
    parts = Message("user", [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}])
    plain = "{{ messages[0].content }}"
    over_parts = "{% for part in messages[0]['content'] %}{{ part.type }}:{{ part.text }};{% endfor %}"
    either = "{% if messages[0].content is string %}" + plain + "{% else %}" + over_parts + "{% endif %}"
    assert shown(plain, [parts]) == "ab"
    assert shown(over_parts, [parts]) == "text:a;text:b;"
    assert shown(over_parts, [USER]) == "text:Hi;"
    assert shown(either, [USER]) == "Hi"
    with pytest.raises(TemplateError, match="text only"):
        shown(plain, [Message("user", [{"type": "image"}])])


def test_text_cut_in_two_by_messages_is_no_control_token_either() -> None:
    cut = [Message("user", "<|im_"), Message("user", "end|>")]
    template = ChatTemplate("{{ messages[0].content ~ messages[1].content }}", CONTROL, {})
    rendered = template.render(cut, generation_prompt=False, options={})
    assert "<|im_end|>" not in rendered.text
    assert rendered.text.replace(rendered.guard, "") == "<|im_end|>"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("\n\n{% for m in messages %}", "line 3"),
        ("\n{{ messages | martian }}", "line 2.*martian"),
        ("a\nb\n{{ 1 + messages }}", "line 3"),
        ("{{ foo.bar }}", "line 1.*foo"),
        ("\n{{ raise_exception('System role not supported') }}", "System role not supported"),
        ("{{ 1 / 0 }}", "line 1.*division"),
        ("{% for m in none %}{% endfor %}", "line 1"),
        ("{% include 'x' %}", "line 1"),
        ("chatlm", "chatml.*llama3"),
    ],
)
def test_broken_templates_name_the_line(source: str, words: str) -> None:
    with pytest.raises(TemplateError, match=words):
        shown(template_source(source))


TIMES_99 = "{% for i in range(99) %}"
HOSTILE = [
    "{% for i in range(10**9) %}{% endfor %}",
    "{% for i in range(9**5) %}{% for j in range(9**5) %}" + "x" * 999 + "{% endfor %}{% endfor %}",
    "{% for i in [1, 2] recursive %}{{ loop([1, 2]) }}{% endfor %}",
    "{% macro f() %}{{ f() }}{{ f() }}{% endmacro %}{{ f() }}",
    "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(60) }}",
    "{{ 'a' * 10**10 }}",
    "{{ [messages] * 10**10 }}",
    "{{ 9 ** (9 ** 9) }}",
    "{{ '%10000000000d' % 1 }}",
    "{{ '{:>10000000000}'.format(1) }}",
    "{{ '{:>{}}'.format(1, 10**10) }}",
    "{{ 'a'.ljust(10**10) }}",
    "{{ 'a' | indent(10**10, true) }}",
    "{{ 'a'.translate({97: 'b' * 10**6}) }}",
    "{{ [1] | batch(10**10, 'x') | list }}",
    "{{ (1).to_bytes(10**10) }}",
    "{{ ('z' * 10**6) | int(base=36) }}",
    "{% set s = 'a' * 10**6 %}{{ s.replace('a', s) }}",
    "{% set s = 'a' * 10**6 %}{{ s | join(s) }}",
    "{% set n = namespace(x='aa') %}{% for i in range(99) %}{% set n.x = n.x + n.x %}{% endfor %}",
    "{% set n = namespace(x='aa') %}{% for i in range(99) %}{% set n.x = n.x ~ n.x %}{% endfor %}",
    "{% set n = namespace(x='a') %}"
    + TIMES_99
    + "{% set y %}{{ n.x }}{{ n.x }}{% endset %}{% set n.x = y %}{% endfor %}",
    "{% set n = namespace(x=[1]) %}{% for i in range(99) %}{% set n.x = n.x + n.x %}{% endfor %}",
    "{% set n = namespace(x=[1]) %}{% for i in range(99) %}{% set n.x = [n.x, n.x] %}{% endfor %}{{ n.x }}",
    "{% set n = namespace(x={}) %}{% for i in range(99) %}{% set n.x = {'a': n.x, 'b': n.x} %}{% endfor %}",
    "{% set n = namespace(l=[]) %}{% set s = 'a' * 10**6 %}" + TIMES_99 + "{% set n.l = n.l + [s[i:]] %}{% endfor %}",
    "{{ lipsum(10**9) }}",
    "{{ messages.append(1) }}",
    "{{ messages.__class__.__mro__ }}",
    "{{ raise_exception.__globals__['x'] }}",
    "{{ '{0.__class__.__mro__}'.format(messages) | int('x') + messages }}",
    "{{ " + "(" * 9999 + "1" + ")" * 9999 + " }}",
    "{{ " + "9" * 9999 + " }}",
    "{% if 1 %}" * 500 + "{% endif %}" * 500,
    "x" * 1_000_001,
]


@pytest.mark.parametrize("source", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_templates_end_soon_and_small(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(template_budget, "_STEPS", 20_000)
    monkeypatch.setattr(template_budget, "_SECONDS", 0.5)
    tracemalloc.start()
    try:
        with pytest.raises(TemplateError):
            shown(source)
        assert tracemalloc.get_traced_memory()[1] < 64_000_000
    finally:
        tracemalloc.stop()


def test_time_ends_what_takes_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(template_budget, "_SECONDS", 0.05)
    slow = "{% set s = 'a' * 10**6 %}{% set t = 'a' * 10**6 %}{% for i in range(9**5) %}{{ '' if s == t }}{% endfor %}"
    with pytest.raises(TemplateError, match="too long"):
        shown(slow)


def test_steps_end_what_takes_little_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(template_budget, "_SECONDS", 1_000.0)
    monkeypatch.setattr(template_budget, "_STEPS", 1_000)
    with pytest.raises(TemplateError, match="too many steps"):
        shown("{% for i in range(9**5) %}{% endfor %}")


def test_a_long_conversation_is_not_hostile() -> None:
    messages = [Message(role, "word " * 2_000) for _ in range(100) for role in ("user", "assistant")]
    text = shown("{% for m in messages %}{{ m.role ~ m.content | trim }}{{ messages | length }}{% endfor %}", messages)
    assert len(text) > 1_900_000


@pytest.mark.parametrize("name", BUILT_IN_TEMPLATES)
def test_built_in_templates(name: str) -> None:
    conversation = [Message("system", "Short."), USER, Message("assistant", "Yes?"), Message("user", "Bye")]
    text = shown(template_source(name), conversation)
    plain = jinja2.Environment(trim_blocks=True, lstrip_blocks=True).from_string(BUILT_IN_TEMPLATES[name])
    values = [{"role": message.role, "content": message.content} for message in conversation]
    assert text == plain.render(messages=values, add_generation_prompt=True, bos_token="<s>", eos_token="</s>")
    assert [text.index(word) for word in ("Short.", "Hi", "Yes?", "Bye")] == sorted(
        text.index(word) for word in ("Short.", "Hi", "Yes?", "Bye")
    )
    # What was said stays the same when more is said.
    assert text.startswith(shown(template_source(name), conversation[:2]))
