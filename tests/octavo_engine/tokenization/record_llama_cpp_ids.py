"""Records llama.cpp's token ids for the corpus in llama_cpp_ids.json, beside this script. Not part of the tests.

Run it in an environment of its own, with Octavo's engine and tests/support on the path:
    pip install llama-cpp-python==0.3.36 gguf psutil
    PYTHONPATH=engine:tests/support python tests/octavo_engine/tokenization/record_llama_cpp_ids.py STARTER.gguf
"""

from __future__ import annotations

import ctypes
import json
import sys
import tempfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gguf
import llama_cpp  # type: ignore[import-not-found]

from octavo_engine.models.files.gguf_header import read_header
from octavo_engine.tokenization.splits import SPLITS
from token_corpus import TEXTS, sentencepiece_metadata, spaced_bpe_metadata, unigram_metadata

SILENT = llama_cpp.llama_log_callback(lambda *_: None)
TARGET = Path(__file__).with_name("llama_cpp_ids.json")


def ids(path: Path) -> list[list[list[int]]]:
    """For each text its ids, without and with control tokens recognised."""
    parameters = llama_cpp.llama_model_default_params()
    parameters.vocab_only = True
    model = llama_cpp.llama_model_load_from_file(str(path).encode(), parameters)
    if not model:
        raise SystemExit(f"llama.cpp does not open {path}")
    vocabulary = llama_cpp.llama_model_get_vocab(model)
    found = []
    for text in TEXTS:
        data = text.encode()
        buffer = (llama_cpp.llama_token * (4 * len(data) + 16))()
        both = []
        for parses_special in (False, True):
            count = llama_cpp.llama_tokenize(vocabulary, data, len(data), buffer, len(buffer), False, parses_special)
            both.append(list(buffer[:count]))
        found.append(both)
    llama_cpp.llama_model_free(model)
    return found


def write_vocabulary(path: Path, metadata: Mapping[str, Any]) -> None:
    """A GGUF file with a tokenizer and no weights."""
    writer = gguf.GGUFWriter(str(path), "llama")
    for name in ("context_length", "embedding_length", "block_count", "feed_forward_length", "head_count"):
        getattr(writer, f"add_{name}")(64)
    writer.add_layer_norm_rms_eps(1e-5)
    for name, value in metadata.items():
        if isinstance(value, bool):
            writer.add_bool(name, value)
        elif isinstance(value, int):
            writer.add_uint32(name, value)
        elif isinstance(value, str):
            writer.add_string(name, value)
        else:
            writer.add_array(name, list(value))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def digests(found: list[list[list[int]]]) -> list[int]:
    """One number for the ids of each text; also in test_llama_cpp_ids.py."""
    return [zlib.crc32(json.dumps(both).encode()) for both in found]


def main() -> None:
    """Record the ids of the starter itself, and numbers for those of the other vocabularies."""
    llama_cpp.llama_log_set(SILENT, ctypes.c_void_p(0))
    starter = Path(sys.argv[1])
    metadata = {
        name: value.tolist() if hasattr(value, "tolist") else value
        for name, value in read_header(starter).metadata.items()
        if name.startswith("tokenizer.ggml.")
    }
    made = {
        f"split {name}": metadata | {"tokenizer.ggml.pre": name}
        for name, split in SPLITS.items()
        if not split.escapes_spaces and name != "gpt2"
    }
    made["sentencepiece with a space"] = sentencepiece_metadata(metadata, add_space_prefix=True)
    made["sentencepiece without"] = sentencepiece_metadata(metadata, add_space_prefix=False)
    made["unigram"] = unigram_metadata(metadata)
    made["spaced bpe"] = spaced_bpe_metadata(metadata)
    recorded = {}
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, values) in enumerate(made.items()):
            path = Path(folder) / f"{number}.gguf"
            write_vocabulary(path, values)
            recorded[name] = digests(ids(path))
            path.unlink()
    content = {"llama_cpp_python": llama_cpp.__version__, "starter": ids(starter), "digests": recorded}
    TARGET.write_text(json.dumps(content, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
