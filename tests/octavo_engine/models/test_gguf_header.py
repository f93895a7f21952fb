"""The header reader agrees with the `gguf` package, and turns every defect into a ModelLoadError, in bounded time."""

from __future__ import annotations

import contextlib
import io
import struct
import time
from pathlib import Path
from typing import Any

import gguf
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from octavo_engine import ModelLoadError, inspect
from octavo_engine.models.files.gguf_header import read_header
from octavo_engine.models.files.tensor_type import IN_GGUF, TensorType
from tiny_decoder import decoder_of
from tiny_families import tiny_model, write_gguf

Kind = gguf.GGMLQuantizationType


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "Tiny-Llama.Q8_0.gguf"
    write_gguf(tiny_model("llama", num_hidden_layers=1), "llama", path, kind=Kind.Q8_0)
    return path


def test_it_reads_what_the_package_reads(tiny: Path) -> None:
    ours, theirs = read_header(tiny), gguf.GGUFReader(tiny)
    assert ours.metadata["general.architecture"] == "llama"
    assert ours.metadata["llama.context_length"] == 256
    assert {name: (info.offset, info.nbytes) for name, info in ours.tensors.items()} == {
        tensor.name: (tensor.data_offset, tensor.n_bytes) for tensor in theirs.tensors
    }


def test_block_sizes_are_those_of_the_package() -> None:
    for kind in map(TensorType, IN_GGUF):
        length, nbytes = gguf.GGML_QUANT_SIZES[Kind(kind.value)]
        assert (kind.block_length, kind.block_bytes) == (length, nbytes), kind.name


def test_the_starter_is_inspected_quickly_without_torch(starter_model: Path) -> None:
    started = time.perf_counter()
    info = inspect(starter_model)
    assert time.perf_counter() - started < 0.5
    assert (info.name, info.quantization, info.supported) == ("SmolLM2 135M Instruct", "Q4_1", True)
    assert (info.context_length, info.vocab_size, info.layers) == (8192, 49152, 30)
    with starter_model.open("rb") as file:
        assert inspect(file).parameters == info.parameters


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (b"Dear diary, this is a text file.\n", "text file"),
        (b"PK\x03\x04" + bytes(60), "not a GGUF"),
        (b"GGUF" + struct.pack("<I", 99) + bytes(16), "version"),
        (b"GGUF" + struct.pack("<I", 3), "cut short|incomplete|ends|truncated"),
        (b"GGUF" + struct.pack("<IQQ", 3, 1 << 60, 0) + bytes(64), "damaged"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1 << 60) + bytes(64), "damaged"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 1 << 50) + bytes(64), "damaged"),
    ],
)
def test_what_is_no_model_is_told_apart(content: bytes, words: str) -> None:
    with pytest.raises(ModelLoadError, match=words):
        read_header(io.BytesIO(content))


def test_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    for path in (tmp_path / "none.gguf", tmp_path):
        with pytest.raises(ModelLoadError):
            read_header(path)


def test_a_truncated_model_says_how_much_is_missing(tiny: Path, tmp_path: Path) -> None:
    whole = tiny.read_bytes()
    (tmp_path / "half.gguf").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ModelLoadError) as caught:
        read_header(tmp_path / "half.gguf")
    assert caught.value.available == len(whole) // 2
    assert caught.value.needed is not None
    assert len(whole) // 2 < caught.value.needed <= len(whole)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"block_count": 3}, "blk.2"),
        ({"block_count": 4000}, "20 tensors"),
        ({"embedding_length": 128}, "shape"),
        ({"attention.head_count": 0}, "head"),
    ],
)
def test_a_header_that_contradicts_itself(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    write_gguf(tiny_model("llama", num_hidden_layers=2), "llama", tmp_path / "tiny.gguf", kind=Kind.F16, **changes)
    with pytest.raises(ModelLoadError, match=words):
        decoder_of(tmp_path / "tiny.gguf")
    info = inspect(tmp_path / "tiny.gguf")
    assert not info.supported
    assert info.reason


def test_an_architecture_that_does_not_run_is_named(tmp_path: Path) -> None:
    writer = gguf.GGUFWriter(tmp_path / "other.gguf", "mamba")
    writer.add_uint32("mamba.context_length", 64)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    info = inspect(tmp_path / "other.gguf")
    assert (info.supported, info.architecture) == (False, "mamba")
    assert "mamba" in str(info.reason)
    assert "llama" in str(info.reason)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_bytes_never_do_more_than_raise(tiny: Path, data: st.DataObject) -> None:
    content = bytearray(tiny.read_bytes())
    end = data.draw(st.integers(0, len(content)))
    edges = min(end, 4000)
    for _ in range(data.draw(st.integers(0, 4))):
        if edges:
            at = data.draw(st.integers(0, edges - 1))
            content[at] = data.draw(st.integers(0, 255))
    started = time.perf_counter()
    # Any other error fails the test.
    with contextlib.suppress(ModelLoadError):
        inspect(io.BytesIO(bytes(content[:end])))
    assert time.perf_counter() - started < 2
