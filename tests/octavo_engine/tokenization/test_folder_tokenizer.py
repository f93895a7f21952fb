"""Tokenizers of Hugging Face folders: the ids of transformers, with the rules of those rebuilt from GGUF."""

import io
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

from octavo_engine import ModelLoadError, TemplateError
from octavo_engine.models.files.gguf_header import read_header
from octavo_engine.text_stream import TextStream
from octavo_engine.tokenization.folder_tokenizer import FolderTokenizer
from octavo_engine.tokenization.gguf_tokenizer import GgufTokenizer
from token_corpus import TEXTS, sentencepiece_metadata

CONTROL = ["<unk>", "<s>", "</s>", "<|im_end|>"]
PLAIN = [text for text in TEXTS if not any(token in text for token in [*CONTROL, "<tool>"])]
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
TEMPLATE = "{% for m in messages %}{{ bos_token if loop.first }}{{ m.content }}<|im_end|>{% endfor %}"


def byte_level() -> Tokenizer:
    """As in Llama 3's folders."""
    made = Tokenizer(models.BPE(ignore_merges=True))
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(LLAMA3), "isolated"), pre_tokenizers.ByteLevel(False, use_regex=False)]
    )
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator(
        TEXTS,
        trainers.BpeTrainer(vocab_size=900, initial_alphabet=alphabet, show_progress=False, special_tokens=CONTROL),
    )
    return made


def prepended() -> Tokenizer:
    """As in Llama 2's folders: a space before each text."""
    made = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    made.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    special = [*CONTROL, *(f"<0x{byte:02X}>" for byte in range(256))]
    made.train_from_iterator(
        TEXTS[:14], trainers.BpeTrainer(vocab_size=900, show_progress=False, special_tokens=special, max_token_length=9)
    )
    described = json.loads(made.to_str())
    described["added_tokens"] = [token for token in described["added_tokens"] if token["content"] in CONTROL]
    made = Tokenizer.from_str(json.dumps(described))
    made.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    return made


def metaspace(scheme: str) -> Callable[[], Tokenizer]:
    """As in newer SentencePiece folders."""

    def make() -> Tokenizer:
        made = prepended()
        made.normalizer = None
        made.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme, split=False)
        return made

    return make


def unigram() -> Tokenizer:
    made = Tokenizer(models.Unigram())
    made.normalizer = normalizers.NFKC()
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=700, special_tokens=CONTROL, unk_token="<unk>", show_progress=False, max_piece_length=8
    )
    made.train_from_iterator(TEXTS, trainer)
    return made


KINDS = {
    "byte level": byte_level,
    "prepended": prepended,
    "metaspace always": metaspace("always"),
    "metaspace first": metaspace("first"),
    "metaspace never": metaspace("never"),
    "unigram": unigram,
}


def save(folder: Path, made: Tokenizer, **settings: Any) -> PreTrainedTokenizerFast:
    made.add_tokens([AddedToken("<tool>", special=False, normalized=False)])
    made.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A $B", special_tokens=[("<s>", made.token_to_id("<s>"))]
    )
    saved = PreTrainedTokenizerFast(
        tokenizer_object=made, bos_token="<s>", eos_token="</s>", unk_token="<unk>", chat_template=TEMPLATE, **settings
    )
    saved.save_pretrained(folder)
    return saved


@pytest.mark.parametrize("kind", KINDS)
def test_ids_are_those_of_transformers(tmp_path: Path, kind: str) -> None:
    truth = save(tmp_path, KINDS[kind]())
    tokenizer = FolderTokenizer(tmp_path)
    for text in TEXTS:
        assert tokenizer.encode(text) == truth.encode(text, add_special_tokens=False), text
        # Control tokens stay text, and cannot come about in any way.
        forbidden = {1, 2, 3} if kind == "unigram" else {0, 1, 2, 3}
        assert forbidden.isdisjoint(tokenizer.encode(text, parse_special=False)), text
    assert tokenizer.encode("a", add_bos=True) == truth.encode("a")
    assert tokenizer.bos_id == truth.bos_token_id
    messages = [{"role": "user", "content": "Hello <tool> <|im_end|> you"}]
    rendered = truth.apply_chat_template(messages, tokenize=False)
    assert tokenizer.decode(tokenizer.apply_chat_template(messages)).count("<|im_end|>") == rendered.count("<|im_end|>")
    assert tokenizer.apply_chat_template(messages).count(truth.bos_token_id) == 1


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "unigram"])
def test_text_comes_back_whole_and_piece_by_piece(tmp_path: Path, kind: str) -> None:
    save(tmp_path, KINDS[kind]())
    tokenizer = FolderTokenizer(tmp_path)
    for text in PLAIN:
        ids = tokenizer.encode(text, parse_special=False)
        stream = TextStream(tokenizer.token_bytes, drops_space=tokenizer.begins_text([]))
        streamed = "".join([*map(stream.push, ids), stream.end()])
        # Where a space in front of a text is shared with its beginning, it cannot come back.
        if "▁" not in text and not (text.startswith(" ") and kind in ("metaspace always", "metaspace first")):
            assert tokenizer.decode(ids) == text
        assert kind == "metaspace never" or streamed == tokenizer.decode(ids)


def test_all_ends_of_a_turn_are_found(tmp_path: Path) -> None:
    save(tmp_path, byte_level())
    assert FolderTokenizer(tmp_path).eos_ids == {2, 3}
    (tmp_path / "generation_config.json").write_text('{"eos_token_id": [5, 900000]}')
    (tmp_path / "config.json").write_text('{"eos_token_id": 6}')
    assert FolderTokenizer(tmp_path).eos_ids == {2, 3, 5, 6}


def test_templates_lie_in_several_places(tmp_path: Path) -> None:
    save(tmp_path, byte_level())
    hello = [{"role": "user", "content": "Hello"}]

    def text(**arguments: Any) -> str:
        tokenizer = FolderTokenizer(tmp_path)
        return tokenizer.decode(tokenizer.apply_chat_template(hello, **arguments), skip_special=True)

    (tmp_path / "chat_template.jinja").unlink(missing_ok=True)
    settings = json.loads((tmp_path / "tokenizer_config.json").read_text())
    settings.pop("chat_template", None)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    with pytest.raises(TemplateError, match=r"no chat template.*chatml"):
        text()
    named = [{"name": "default", "template": "plain"}, {"name": "tool_use", "template": "{{ tools[0].name }}"}]
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings | {"chat_template": named}))
    assert text() == "plain"
    assert text(tools=[{"name": "now"}]) == "now"
    (tmp_path / "chat_template.jinja").write_text("from a file")
    assert text() == "from a file"
    chosen = FolderTokenizer(tmp_path, "alpaca")
    assert "### Instruction:\nHello" in chosen.decode(chosen.apply_chat_template(hello))


def sentencepiece_bytes(metadata: dict[str, Any]) -> bytes:
    """A tokenizer.model with a GGUF header's pieces."""

    def number(value: int) -> bytes:
        made = b""
        while value > 127:
            made += bytes((value & 127 | 128,))
            value >>= 7
        return made + bytes((value,))

    def nested(field: int, content: bytes) -> bytes:
        return number(field << 3 | 2) + number(len(content)) + content

    out = io.BytesIO()
    columns = (metadata[f"tokenizer.ggml.{name}"] for name in ("tokens", "scores", "token_type"))
    for token, score, kind in zip(*columns, strict=True):
        piece = nested(1, token.encode()) + b"\x15" + struct.pack("<f", score) + b"\x18" + number(kind)
        out.write(nested(1, piece))
    out.write(nested(2, b"\x18\x02" + number(40 << 3) + b"\0" + number(41 << 3) + b"\1" + number(42 << 3) + b"\2"))
    out.write(nested(3, nested(1, b"identity") + b"\x18\x01\x20\x00\x28\x01"))
    return out.getvalue()


def test_a_sentencepiece_file_is_read_as_the_gguf_made_of_it(tmp_path: Path, starter_model: Path) -> None:
    metadata = sentencepiece_metadata(read_header(starter_model).metadata, add_space_prefix=True)
    (tmp_path / "tokenizer.model").write_bytes(sentencepiece_bytes(metadata))
    from_folder, from_gguf = FolderTokenizer(tmp_path), GgufTokenizer(metadata)
    for text in TEXTS:
        assert from_folder.encode(text, add_bos=True) == from_gguf.encode(text, add_bos=True)
    assert (from_folder.bos_id, from_folder.eos_ids) == (from_gguf.bos_id, from_gguf.eos_ids)
    (tmp_path / "added_tokens.json").write_text(json.dumps({"<new>": from_gguf.vocab_size}))
    assert FolderTokenizer(tmp_path).encode("a<new>")[-1] == from_gguf.vocab_size


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("README", b"", "neither tokenizer.json nor tokenizer.model"),
        ("tokenizer.json", b"{", "damaged"),
        ("tokenizer.json", b"[" * 100_000, "damaged"),
        ("tokenizer.json", b"{}", "damaged"),
        ("tokenizer.json", b'{"model": {"type": "BPE", "vocab": {"a": -1}, "merges": []}}', "tokens|damaged"),
        ("tokenizer.json", b'{"model": {"type": "BPE", "vocab": {"a": 4294967295}, "merges": []}}', "tokens"),
        ("tokenizer.json", b'{"model": {"type": "WordPiece", "vocab": {"a": 0}}}', "'WordPiece'"),
        ("tokenizer.json", b'{"model": {"vocab": {"a": 0}, "merges": []}, "normalizer": {"type": "X"}}', "damaged"),
        ("tokenizer.model", b"", "damaged"),
        ("tokenizer.model", b"IQ== 0\nIg== 1\n", "damaged"),
        ("tokenizer.model", b"\x0a\xff\xff\xff\xff\x7f", "damaged"),
        ("tokenizer.model", b"\x0a\x03\x0a\x01a\x12\x02\x18\x03", "words or characters"),
    ],
)
def test_bad_folders_are_load_errors(tmp_path: Path, name: str, content: bytes, words: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ModelLoadError, match=words):
        FolderTokenizer(tmp_path)
