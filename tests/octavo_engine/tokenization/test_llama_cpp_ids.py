"""Token ids equal to those that llama.cpp gave, recorded by record_llama_cpp_ids.py: on the starter, and for its tokens
under every other pre-tokenizer and as the vocabularies of the other kinds.
"""

import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from octavo_engine.models.files.gguf_header import read_header
from octavo_engine.tokenization.gguf_tokenizer import GgufTokenizer
from octavo_engine.tokenization.splits import SPLITS
from token_corpus import TEXTS, sentencepiece_metadata, spaced_bpe_metadata, unigram_metadata

RECORDED: Mapping[str, Any] = json.loads(Path(__file__).with_name("llama_cpp_ids.json").read_text())
SPLIT_NAMES = [name.removeprefix("split ") for name in RECORDED["digests"] if name.startswith("split ")]
# One name for each way to split; the others must have been recorded alike.
DISTINCT = {SPLITS[name]: name for name in SPLIT_NAMES}
# llama.cpp takes all letters for both cases under these names; Octavo follows the models' own patterns there.
CASED = {text for text in TEXTS if text.startswith("CamelCase")}
APPROXIMATED = {"cohere2moe": CASED, "kimi-k2": CASED, "youtu": CASED}


@pytest.fixture(scope="module")
def metadata(starter_model: Path) -> dict[str, Any]:
    return {
        name: value for name, value in read_header(starter_model).metadata.items() if name.startswith("tokenizer.ggml.")
    }


def ids(tokenizer: GgufTokenizer) -> list[list[list[int]]]:
    return [[tokenizer.encode(text, parse_special=False), tokenizer.encode(text)] for text in TEXTS]


def different(tokenizer: GgufTokenizer, recorded: list[int]) -> set[str]:
    """The texts whose ids are not those of the recorded digests."""
    assert len(recorded) == len(TEXTS)
    found = (zlib.crc32(json.dumps(both).encode()) for both in ids(tokenizer))
    return {text for text, digest, known in zip(TEXTS, found, recorded, strict=True) if digest != known}


def test_the_starter(metadata: dict[str, Any]) -> None:
    tokenizer = GgufTokenizer(metadata)
    assert ids(tokenizer) == RECORDED["starter"]
    assert all(tokenizer.decode(plain) == text for text, (plain, _) in zip(TEXTS, RECORDED["starter"], strict=True))


@pytest.mark.parametrize("name", DISTINCT.values())
def test_every_pre_tokenizer(metadata: dict[str, Any], name: str) -> None:
    recorded = RECORDED["digests"]
    tokenizer = GgufTokenizer(metadata | {"tokenizer.ggml.pre": name})
    assert different(tokenizer, recorded[f"split {name}"]) == APPROXIMATED.get(name, set())
    for other in SPLIT_NAMES:
        if SPLITS[other] == SPLITS[name]:
            assert recorded[f"split {other}"] == recorded[f"split {name}"], other


def test_other_kinds(metadata: dict[str, Any]) -> None:
    recorded = RECORDED["digests"]
    for name, made in {
        "sentencepiece with a space": sentencepiece_metadata(metadata, add_space_prefix=True),
        "sentencepiece without": sentencepiece_metadata(metadata, add_space_prefix=False),
        "unigram": unigram_metadata(metadata),
        "spaced bpe": spaced_bpe_metadata(metadata),
    }.items():
        assert different(GgufTokenizer(made), recorded[name]) == set(), name
