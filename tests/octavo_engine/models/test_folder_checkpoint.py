"""Hugging Face folders: packed, sharded and half-precision checkpoints, and all that can be wrong with a folder."""

from __future__ import annotations

import contextlib
import json
import shutil
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from transformers.models.auto.modeling_auto import AutoModelForCausalLM

from octavo_engine import ModelLoadError, inspect, model_name
from octavo_engine.models.files.safetensors_header import read_safetensors
from packed_checkpoint import pack
from ragged import batch, stale_pages
from tiny_decoder import decoder_of
from tiny_families import VOCABULARY, reference, tiny_model

TOKENS = torch.randint(0, VOCABULARY, (40,), generator=torch.Generator().manual_seed(5)).tolist()
METHODS = ["gptq", "gptq-v2", "gptq-8", "awq", "fp8-blocks", "fp8-rows", "fp8-one"]


def logits(path: Path, **options: Any) -> torch.Tensor:
    decoder = decoder_of(path, **options)
    return decoder.forward(batch([(TOKENS, 0, [4, 0, 2])], every=True), stale_pages(decoder))


def agrees(ours: torch.Tensor, theirs: torch.Tensor, tolerance: float = 1e-4) -> bool:
    return bool(((ours - theirs).abs().amax(-1) <= tolerance * theirs.abs().amax(-1)).all())


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("folders") / "Tiny-Llama"
    tiny_model("llama", num_hidden_layers=2).save_pretrained(folder)
    return folder


@pytest.mark.parametrize("method", METHODS)
def test_packed_checkpoints_give_the_logits_of_their_values(tmp_path: Path, method: str) -> None:
    model = tiny_model("llama", num_hidden_layers=2)
    before = reference(model, TOKENS)
    pack(model, tmp_path, method)
    assert not agrees(before, reference(model, TOKENS)), "rounding changed nothing: the test shows nothing"
    assert agrees(logits(tmp_path, weights="float32"), reference(model, TOKENS))
    names = {"g": "GPTQ 4-bit", "a": "AWQ 4-bit", "f": "F8_E4M3"} | ({"g": "GPTQ 8-bit"} if method == "gptq-8" else {})
    assert inspect(tmp_path).quantization == names[method[0]]


def test_gptq_in_the_order_of_activations(tmp_path: Path) -> None:
    model = tiny_model("llama", num_hidden_layers=2)
    pack(model, tmp_path, "gptq", in_order=False)
    assert agrees(logits(tmp_path, weights="float32"), reference(model, TOKENS))


@pytest.mark.parametrize("method", ["gptq", "awq"])
def test_packed_groups_are_computed_as_four_bits(tmp_path: Path, method: str) -> None:
    model = tiny_model("llama", num_hidden_layers=2, hidden_size=128, intermediate_size=128)
    pack(model, tmp_path, method, group=64)
    decoder = decoder_of(tmp_path, weights="int4")
    assert any("int4" in line for line in decoder.describe_layouts())
    ours = decoder.forward(batch([(TOKENS, 0, [4, 0, 2])], every=True), stale_pages(decoder))
    assert agrees(ours, reference(model, TOKENS), 0.05)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_half_precision_and_shards(tmp_path: Path, dtype: torch.dtype) -> None:
    model = tiny_model("qwen2").to(dtype)
    model.save_pretrained(tmp_path, max_shard_size="60KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 2
    wide = AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32, attn_implementation="eager")
    assert agrees(logits(tmp_path, weights="float32"), reference(wide, TOKENS))
    assert inspect(tmp_path).file_bytes == sum(file.stat().st_size for file in tmp_path.glob("*.safetensors"))


def test_a_folder_is_described(plain: Path) -> None:
    info = inspect(plain)
    assert (info.name, info.architecture, info.quantization, info.supported) == ("Tiny Llama", "llama", "F32", True)
    assert (info.layers, info.vocab_size, info.context_length) == (2, VOCABULARY, 256)
    assert inspect(plain / "model.safetensors") == info
    assert info.parameters == sum(p.numel() for p in tiny_model("llama", num_hidden_layers=2).parameters())


def edited(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    """Changes config.json."""

    def edit(folder: Path) -> None:
        config = json.loads((folder / "config.json").read_text())
        change(config)
        (folder / "config.json").write_text(json.dumps(config))

    return edit


def pickled(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def indexed(names: object) -> Callable[[Path], object]:
    return lambda folder: (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": names}))


FAULTS: dict[str, tuple[Callable[[Path], object], str]] = {
    "no config": (lambda folder: (folder / "config.json").unlink(), "no config.json"),
    "config is text": (lambda folder: (folder / "config.json").write_text("hello"), "config.json is damaged"),
    "config is a list": (lambda folder: (folder / "config.json").write_text("[]"), "config.json is damaged"),
    "config nests": (lambda folder: (folder / "config.json").write_text("[" * 200_000), "config.json is damaged"),
    "other architecture": (edited(lambda config: config.update(model_type="mamba")), "mamba"),
    "architecture is a number": (edited(lambda config: config.update(model_type=7)), "7"),
    "no heads": (edited(lambda config: config.update(num_attention_heads=0)), "num_attention_heads"),
    "many layers": (edited(lambda config: config.update(num_hidden_layers=10**9)), "num_hidden_layers"),
    "layers missing": (edited(lambda config: config.update(num_hidden_layers=3)), "lacks the tensor"),
    "layers too few": (edited(lambda config: config.update(num_hidden_layers=1)), "a part that"),
    "wrong width": (edited(lambda config: config.update(intermediate_size=95)), "shape"),
    "other rope": (edited(lambda config: config.update(rope_parameters={"rope_type": "axial"})), "axial"),
    "other activation": (edited(lambda config: config.update(hidden_act="relu")), "relu"),
    "packed by something": (edited(lambda config: config.update(quantization_config={"quant_method": "aqlm"})), "aqlm"),
    "pickle": (pickled, "pickle"),
    "nothing": (lambda folder: (folder / "model.safetensors").unlink(), "no safetensors"),
    "shard missing": (indexed({"a": "model-00002-of-00002.safetensors"}), "1 of them are not in its folder"),
    "shard elsewhere": (indexed({"a": "../model.safetensors"}), "no safetensors file of this folder"),
    "index is odd": (indexed([1]), "lists no files"),
    "cut": (lambda folder: cut(folder / "model.safetensors"), "cut short"),
    "empty": (lambda folder: (folder / "model.safetensors").write_bytes(b""), "damaged"),
    "absurd header": (
        lambda folder: (folder / "model.safetensors").write_bytes(struct.pack("<Q", 1 << 60) + b"{}"),
        "announces a header",
    ),
}


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


@pytest.mark.parametrize("fault", FAULTS)
def test_a_folder_that_cannot_be_opened_says_why(plain: Path, tmp_path: Path, fault: str) -> None:
    damage, words = FAULTS[fault]
    folder = tmp_path / "broken"
    shutil.copytree(plain, folder)
    damage(folder)
    started = time.perf_counter()
    with pytest.raises(ModelLoadError, match=words):
        decoder_of(folder)
    assert time.perf_counter() - started < 1


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_headers_never_do_more_than_raise(plain: Path, tmp_path: Path, data: st.DataObject) -> None:
    content = bytearray((plain / "model.safetensors").read_bytes())
    header = struct.unpack("<Q", content[:8])[0]
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, 8 + header - 1))] = data.draw(st.integers(0, 255))
    (tmp_path / "model.safetensors").write_bytes(bytes(content[: data.draw(st.integers(0, len(content)))]))
    # Any other error fails the test.
    with contextlib.suppress(ModelLoadError):
        read_safetensors(tmp_path / "model.safetensors", 0)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("SmolLM2-135M-Instruct.Q4_1.gguf", "SmolLM2 135M Instruct"),
        ("Qwen2.5-7B-Instruct-Q4_K_M-00001-of-00002.gguf", "Qwen2.5 7B Instruct"),
        ("Qwen2.5-7B", "Qwen2.5 7B"),
        ("Phi-3.5-mini/model-00001-of-00002.safetensors", "Phi 3.5 mini"),
        ("gpt-oss-20b-mxfp4.gguf", "gpt oss 20b"),
    ],
)
def test_models_are_called_by_their_names(path: str, name: str) -> None:
    assert model_name(Path(path)) == name
