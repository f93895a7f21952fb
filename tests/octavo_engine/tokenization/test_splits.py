"""Pre-tokenizers of GGUF by name, equal to the tokenizers of the families that they stand for, trained here."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers

from octavo_engine import ModelLoadError
from octavo_engine.tokenization.gguf_tokenizer import GgufTokenizer
from octavo_engine.tokenization.splits import SPLITS
from token_corpus import TEXTS

BYTES = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
GPT2 = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)


def patterns(*given: str) -> list[pre_tokenizers.PreTokenizer]:
    return [*(pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in given), BYTES]


# The steps of the families' own tokenizer.json, as their makers publish them.
FAMILIES: dict[str, Sequence[pre_tokenizers.PreTokenizer]] = {
    "gpt-2": [GPT2],
    "smollm": [pre_tokenizers.Digits(individual_digits=True), GPT2],
    "falcon": [
        pre_tokenizers.Punctuation("contiguous"),
        GPT2,
        pre_tokenizers.Split(Regex("[0-9][0-9][0-9]"), "isolated"),
    ],
    "qwen2": patterns(
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
        r"|\s+(?!\S)|\s+"
    ),
    "dbrx": patterns(
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
        r"|\s+(?!\S)|\s+"
    ),
    "gpt-4o": patterns(
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
        r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
        r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    ),
    "deepseek-v3": patterns(
        r"\p{N}{1,3}",
        r"[一-龥぀-ゟ゠-ヿ]+",
        r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*"
        r"|\s*[\r\n]+|\s+(?!\S)|\s+",
    ),
}


def trained(steps: Sequence[pre_tokenizers.PreTokenizer]) -> Tokenizer:
    """Merges across all bounds, so that a bound in the wrong place shows, and then the family's splits."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = BYTES
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=3_000, initial_alphabet=alphabet, show_progress=False, max_token_length=8)
    made.train_from_iterator(TEXTS, trainer)
    made.pre_tokenizer = pre_tokenizers.Sequence(list(steps))
    return made


def rebuilt(original: Tokenizer, name: str) -> GgufTokenizer:
    model: dict[str, Any] = json.loads(original.to_str())["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].__getitem__)
    return GgufTokenizer(
        {
            "tokenizer.ggml.model": "gpt2",
            "tokenizer.ggml.pre": name,
            "tokenizer.ggml.tokens": tokens,
            "tokenizer.ggml.merges": [" ".join(merge) for merge in model["merges"]],
        }
    )


@pytest.mark.parametrize("name", FAMILIES)
def test_a_rebuilt_tokenizer_splits_as_its_family(name: str) -> None:
    original = trained(FAMILIES[name])
    tokenizer = rebuilt(original, name)

    @settings(max_examples=40)
    @given(st.text(alphabet=st.sampled_from("aB1 \n\t'sé的한हि\u0301,.$½🎉"), max_size=24))
    def check(text: str) -> None:
        assert tokenizer.encode(text) == original.encode(text).ids

    for text in TEXTS:
        assert tokenizer.encode(text) == original.encode(text).ids, text
        assert tokenizer.decode(tokenizer.encode(text)) == text
    check()


def test_a_whole_word_is_one_token_where_the_family_says_so() -> None:
    tokens = [*pre_tokenizers.ByteLevel.alphabet(), "abc"]
    metadata = {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.tokens": tokens, "tokenizer.ggml.merges": []}
    for name, count in {"llama-bpe": 1, "dbrx": 3}.items():
        assert len(GgufTokenizer(metadata | {"tokenizer.ggml.pre": name}).encode("abc")) == count


def test_merges_to_control_tokens_are_left_out() -> None:
    tokens = [*pre_tokenizers.ByteLevel.alphabet(), "<s", "<s>"]
    metadata = {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "bloom",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [*[1] * (len(tokens) - 1), 3],
        "tokenizer.ggml.merges": ["< s", "<s >"],
    }
    tokenizer = GgufTokenizer(metadata)
    control = len(tokens) - 1
    assert tokenizer.encode("<s>") == [control]
    assert tokenizer.encode("<s>", parse_special=False) == [control - 1, tokens.index(">")]


def test_an_unknown_name_is_told_with_the_nearest() -> None:
    metadata = {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "lama-bpe", "tokenizer.ggml.tokens": ["a"]}
    with pytest.raises(ModelLoadError, match=r"'lama-bpe'.*llama-bpe"):
        GgufTokenizer(metadata | {"tokenizer.ggml.merges": []})
    assert len(SPLITS) > 60
