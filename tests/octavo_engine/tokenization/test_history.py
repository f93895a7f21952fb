"""A conversation renders the same as it grows, with the tokens of its answers in place where they are just its text."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from octavo_engine import Message
from octavo_engine.models.files.gguf_header import read_header
from octavo_engine.text_stream import TextStream
from octavo_engine.tokenization.gguf_tokenizer import GgufTokenizer
from token_corpus import sentencepiece_metadata

# As in Qwen 3: thoughts of earlier turns are left out, those after the last question stay.
THINKING = """\
{%- set ns = namespace(last=-1) -%}
{%- for m in messages -%}{%- if m.role == 'user' -%}{%- set ns.last = loop.index0 -%}{%- endif -%}{%- endfor -%}
{%- for m in messages -%}
  {%- set content, thoughts = m.content, m.reasoning_content or '' -%}
  {%- if m.role == 'assistant' and '</think>' in content -%}
    {%- set thoughts = content.split('</think>')[0].split('<think>')[-1].strip('\\n') -%}
    {%- set content = content.split('</think>')[-1].lstrip('\\n') -%}
  {%- endif -%}
  {{- '<|im_start|>' ~ m.role ~ '\\n' -}}
  {%- if m.role == 'assistant' and loop.index0 > ns.last and thoughts -%}
    {{- '<think>\\n' ~ thoughts ~ '\\n</think>\\n\\n' -}}
  {%- endif -%}
  {{- content.lstrip('\\n') if m.role == 'assistant' else content -}}{{- '<|im_end|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}
  {%- if enable_thinking is defined and not enable_thinking -%}{{- '<think>\\n\\n</think>\\n\\n' -}}{%- endif -%}
{%- endif -%}
"""
CHATML = "{% for m in messages %}<|im_start|>{{ m.content }}<|im_end|>{% endfor %}"
SPACED = "{{ bos_token }}{% for m in messages %}<|im_start|> {{ m.content }}<|im_end|>{% endfor %}"


@pytest.fixture(scope="module")
def starter(starter_model: Path) -> dict[str, Any]:
    return dict(read_header(starter_model).metadata)


def single_letters(tokenizer: GgufTokenizer, text: str) -> tuple[int, ...]:
    """A text as one token for each letter, which no tokenizer would make of it."""
    return tuple(token for letter in text for token in tokenizer.encode(letter))


def answered(tokenizer: GgufTokenizer, text: str, before: str = "") -> Message:
    return Message("assistant", before + text, token_ids=single_letters(tokenizer, before + text))


def test_thoughts_leave_the_history_and_the_rest_stays(starter: dict[str, Any]) -> None:
    tokenizer = GgufTokenizer(starter, THINKING)
    questions = [Message("user", f"Question {number}") for number in range(4)]
    answers = [
        answered(tokenizer, "first"),
        # Tokens for thoughts and answer: only the answer is shown, and not as these tokens.
        answered(tokenizer, "second", "<think>\nhm\n</think>\n\n"),
        answered(tokenizer, "third"),
    ]
    history = [message for pair in zip(questions, answers, strict=False) for message in pair]
    rendered = [tokenizer.apply_chat_template([*history[: 2 * turn], questions[turn]]) for turn in range(4)]
    for turn, (earlier, later) in enumerate(pairwise(rendered)):
        assert later[: len(earlier)] == earlier, turn
    text = tokenizer.decode(rendered[3])
    assert "hm" not in text
    assert "second<|im_end|>" in text
    for answer, is_kept in zip(answers, (True, False, True), strict=True):
        assert (_holds(rendered[3], answer.token_ids or ()) is not None) is is_kept


def test_an_answer_whose_edges_are_trimmed_spoils_no_other(starter: dict[str, Any]) -> None:
    tokenizer = GgufTokenizer(starter, THINKING)
    good, trimmed = answered(tokenizer, "good"), answered(tokenizer, "\n\ntrimmed")
    question = Message("user", "a")
    ids = tokenizer.apply_chat_template([question, good, question, trimmed, question])
    assert _holds(ids, good.token_ids or ()) is not None
    assert _holds(ids, trimmed.token_ids or ()) is None
    assert "<|im_start|>assistant\ntrimmed<|im_end|>" in tokenizer.decode(ids)


def test_thinking_is_switched_by_an_option(starter: dict[str, Any]) -> None:
    tokenizer = GgufTokenizer(starter, THINKING)
    question = [Message("user", "a")]
    with_thoughts, without = (
        tokenizer.decode(tokenizer.apply_chat_template(question, options={"enable_thinking": is_on}))
        for is_on in (True, False)
    )
    assert without == with_thoughts + "<think>\n\n</think>\n\n"


@pytest.mark.parametrize("template", [CHATML, SPACED])
def test_a_sentencepiece_answer_brings_the_space_before_it(starter: dict[str, Any], template: str) -> None:
    metadata = sentencepiece_metadata(starter, add_space_prefix=True)
    tokenizer = GgufTokenizer(metadata, template)
    question = Message("user", "Say it")
    # As generated: the first token has the space that a text begins with.
    tokens = tuple(map(metadata["tokenizer.ggml.tokens"].index, "▁right"))
    assert tokenizer.decode(tokens) == "right"
    prompt = tokenizer.apply_chat_template([question])
    assert tokenizer.begins_text(prompt)
    stream = TextStream(tokenizer.token_bytes, drops_space=tokenizer.begins_text(prompt))
    assert "".join([*map(stream.push, tokens), stream.end()]) == "right"
    ids = tokenizer.apply_chat_template([question, Message("assistant", "right", token_ids=tokens), question])
    plain = tokenizer.apply_chat_template([question, Message("assistant", "right"), question])
    place = _holds(ids, tokens)
    assert place is not None
    assert ids[place - 1] == tokenizer.encode("<|im_start|>")[0]
    assert _holds(plain, tokens) is None
    # A text goes on after a text: its space is its own.
    assert not tokenizer.begins_text(tokenizer.encode("The capital is"))


@pytest.mark.parametrize("adds", [True, False])
def test_the_beginning_token_stands_once(starter: dict[str, Any], adds: bool) -> None:
    metadata = sentencepiece_metadata(starter, add_space_prefix=True) | {"tokenizer.ggml.add_bos_token": adds}
    for template in (CHATML, SPACED):
        tokenizer = GgufTokenizer(metadata, template)
        ids = tokenizer.apply_chat_template([Message("user", "<s> says <s>")])
        assert ids.count(1) == (1 if adds or template is SPACED else 0)
    assert GgufTokenizer(metadata).encode("<s>a", add_bos=True).count(1) == 1


def test_tokens_that_swallow_white_space(starter: dict[str, Any]) -> None:
    metadata = sentencepiece_metadata(starter, add_space_prefix=False)
    plain = GgufTokenizer(metadata)
    phi = GgufTokenizer(metadata | {"general.name": "Phi-3 mini"})
    assert phi.encode("<|im_start|>\n \n a<s> b") == plain.encode("<|im_start|>a<s> b")
    assert plain.encode("<|im_start|>\na") != plain.encode("<|im_start|>a")


def _holds(ids: Sequence[int], part: Sequence[int]) -> int | None:
    """Where the ids hold these, or None."""
    found = (start for start in range(len(ids)) if tuple(ids[start : start + len(part)]) == tuple(part))
    return next(found, None)
