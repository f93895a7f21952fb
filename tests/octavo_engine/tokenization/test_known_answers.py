"""Answers keep the tokens that were generated for them, where these are just the text that the template wants."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from octavo_engine import Completion, Engine, EngineConfig, GenerationRequest, Message, SamplingParams
from octavo_engine.models.files.gguf_header import read_header
from octavo_engine.tokenization.gguf_tokenizer import GgufTokenizer

QUESTION = Message("user", "Say hello.")
NEXT = Message("user", "Again.")
TEXT = "Hello, world"


@pytest.fixture(scope="module")
def metadata(starter_model: Path) -> dict[str, object]:
    return dict(read_header(starter_model).metadata)


@pytest.fixture(scope="module")
def tokenizer(metadata: dict[str, object]) -> GgufTokenizer:
    return GgufTokenizer(metadata)


def letters(tokenizer: GgufTokenizer, text: str) -> tuple[int, ...]:
    """A text as one token for each letter, which no tokenizer would make of it."""
    return tuple(token for letter in text for token in tokenizer.encode(letter))


def contains(ids: list[int], part: tuple[int, ...]) -> bool:
    return any(tuple(ids[start : start + len(part)]) == part for start in range(len(ids)))


def test_generated_tokens_stay_in_a_history(tokenizer: GgufTokenizer) -> None:
    tokens = letters(tokenizer, TEXT)
    plain = tokenizer.apply_chat_template([QUESTION, Message("assistant", TEXT), NEXT])
    known = tokenizer.apply_chat_template([QUESTION, Message("assistant", TEXT, token_ids=tokens), NEXT])
    assert contains(known, tokens)
    assert not contains(plain, tokens)
    assert tokenizer.decode(known) == tokenizer.decode(plain)
    # What stood before the answer when it was generated is the same now.
    before = tokenizer.apply_chat_template([QUESTION])
    assert known[: len(before) + len(tokens)] == [*before, *tokens]


@pytest.mark.parametrize(
    ("text", "tokens_of"),
    [
        ("Hello, world!", TEXT),
        ("", TEXT),
    ],
)
def test_tokens_of_another_text_are_not_used(tokenizer: GgufTokenizer, text: str, tokens_of: str) -> None:
    known = Message("assistant", text, token_ids=letters(tokenizer, tokens_of))
    plain = Message("assistant", text)
    assert tokenizer.apply_chat_template([QUESTION, known, NEXT]) == tokenizer.apply_chat_template(
        [QUESTION, plain, NEXT]
    )


def test_neither_users_nor_control_tokens_come_in_this_way(tokenizer: GgufTokenizer) -> None:
    end = next(iter(tokenizer.eos_ids))
    text = tokenizer.decode([end])
    for message in (
        Message("assistant", text, token_ids=(end,)),
        Message("user", TEXT, token_ids=letters(tokenizer, TEXT)),
        Message("assistant", TEXT, token_ids=(1 << 40,)),
        Message("assistant", TEXT, token_ids=(-1,)),
    ):
        plain = Message(message.role, message.content)
        assert tokenizer.apply_chat_template([message, NEXT]) == tokenizer.apply_chat_template([plain, NEXT])


TRIMS = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content | trim }}<|im_end|>\n{% endfor %}"
CUTS = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content[:5] }}<|im_end|>\n{% endfor %}"
DROPS = "{% for m in messages[1:] %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
NO_END = "{% for m in messages %}{{ m.role }}: {{ m.content }}, then {% endfor %}"
TWICE = "{% for m in messages %}<|im_start|>{{ m.content }}<|im_end|>{{ m.content }}<|im_end|>{% endfor %}"


@pytest.mark.parametrize("template", [TRIMS, CUTS, DROPS, NO_END, TWICE])
def test_a_template_that_changes_the_text_gets_the_text(metadata: dict[str, object], template: str) -> None:
    tokenizer = GgufTokenizer(metadata, template)
    text = f" {TEXT} " if template is TRIMS else TEXT
    answer = Message("assistant", text, token_ids=letters(tokenizer, text))
    plain = tokenizer.apply_chat_template([Message("assistant", text), NEXT])
    assert tokenizer.apply_chat_template([answer, NEXT]) == plain


@pytest.fixture
def engine(starter_model: Path) -> Iterator[Engine]:
    engine = Engine.open(starter_model, EngineConfig(kv_pages=256))
    yield engine
    engine.close()


def test_a_second_turn_finds_all_that_was_generated(engine: Engine) -> None:
    def ask(*messages: Message, seed: int = 0) -> Completion:
        sampling = SamplingParams(temperature=1.6, seed=seed, max_tokens=60)
        return engine.submit(GenerationRequest(messages=messages, sampling=sampling)).result(60)

    for seed in range(20):
        answer = ask(QUESTION, seed=seed)
        if list(answer.token_ids) != engine.tokenizer.encode(answer.text, parse_special=False):
            break
    else:
        pytest.fail("no answer had tokens of its own")
    text = ask(QUESTION, Message("assistant", answer.text), NEXT)
    kept = ask(QUESTION, Message("assistant", answer.text, token_ids=answer.token_ids), NEXT)
    known = answer.usage.prompt_tokens + answer.usage.completion_tokens
    assert kept.usage.cached_tokens >= known - 1
    assert text.usage.cached_tokens < known - 1
