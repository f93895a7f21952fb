"""What `fit` says before loading is what loading then takes."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import gguf
import pytest

from octavo_engine import EngineConfig, ModelLoadError, OutOfMemory, fit, inspect
from octavo_engine.fitting import require_room
from octavo_engine.pool_size import free_memory
from packed_checkpoint import pack
from tiny_decoder import decoder_of
from tiny_families import FAMILIES, tiny_model, write_gguf

Kind = gguf.GGMLQuantizationType
# Formats that the package can write; all blocks fit rows of 256.
WIDE: dict[str, Any] = {"hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 2}


def check(path: Path, **options: Any) -> None:
    report = fit(inspect(path), EngineConfig(**options))
    invariant = options.pop("batch_invariant", False)
    decoder = decoder_of(path, batch_invariant=invariant, **options)
    assert abs(report.weights - decoder.weight_bytes) <= 0.05 * decoder.weight_bytes
    assert report.kv_per_token == decoder.kv_bytes_per_token


@pytest.mark.parametrize("weights", ["auto", "float32", "bfloat16", "int8", "int4"])
def test_every_layout_of_the_starter(starter_model: Path, weights: str) -> None:
    check(starter_model, weights=weights)


def test_the_exact_mode_of_the_starter(starter_model: Path) -> None:
    check(starter_model, batch_invariant=True)
    check(starter_model, batch_invariant=True, weights="int4")


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family(tmp_path: Path, name: str) -> None:
    tiny_model(name, vocab_size=512).save_pretrained(tmp_path)
    check(tmp_path, weights="int8")


@pytest.mark.parametrize("kind", [Kind.Q4_0, Kind.Q4_1, Kind.Q5_0, Kind.Q5_1, Kind.Q8_0], ids=lambda kind: kind.name)
def test_formats_of_gguf(tmp_path: Path, kind: Kind) -> None:
    write_gguf(tiny_model("llama", **WIDE), "llama", tmp_path / "tiny.gguf", kind=kind)
    check(tmp_path / "tiny.gguf")


@pytest.mark.parametrize("method", ["gptq", "gptq-8", "awq", "fp8-blocks"])
def test_packed_folders(tmp_path: Path, method: str) -> None:
    pack(tiny_model("llama", **WIDE), tmp_path, method)
    check(tmp_path)


def test_a_header_from_elsewhere_is_enough(starter_model: Path) -> None:
    with starter_model.open("rb") as file:
        header = io.BytesIO(file.read(4 << 20))
        header.seek(0)
        whole = fit(inspect(starter_model))
        with pytest.raises(ModelLoadError, match="cut short"):
            inspect(header)
        file.seek(0)
        assert fit(inspect(file)).weights == whole.weights


def test_the_process_grows_by_what_is_said(starter_model: Path) -> None:
    code = """
import json, re, sys
import torch, octavo_kernels
octavo_kernels.warm()
from octavo_engine import Engine, EngineConfig, fit, inspect
def anonymous():
    return int(re.search(r"RssAnon:\\s+(\\d+)", open("/proc/self/status").read())[1]) << 10
sizes = []
def progress(step):
    if step.stage == "weights":
        sizes.append(anonymous())
expected = fit(inspect(sys.argv[1])).weights
engine = Engine.open(sys.argv[1], EngineConfig(kv_pages=64), progress)
print(json.dumps([expected, sizes[-1] - sizes[0], max(sizes) - sizes[0]]))
engine.close()
"""
    done = subprocess.run([sys.executable, "-c", code, str(starter_model)], capture_output=True, text=True, check=True)
    expected, grown, peak = json.loads(done.stdout)
    # The libraries take some megabytes when they are first used, whatever the model's size.
    assert abs(grown - expected) < 0.05 * expected + (24 << 20)
    assert peak < 1.3 * grown


def test_verdicts_follow_the_free_memory(starter_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = inspect(starter_model)
    report = fit(info)
    assert (report.verdict, report.max_context) == ("cpu", 8192)
    assert abs(report.free - free_memory()) < 1 << 30
    monkeypatch.setattr("octavo_engine.fitting.free_memory", lambda: report.weights + report.workspace + (1500 << 20))
    tight = fit(info)
    assert tight.verdict == "cpu"
    monkeypatch.setattr("octavo_engine.fitting.free_memory", lambda: report.weights + report.workspace + (1100 << 20))
    assert fit(info).verdict == "too_big"
    assert fit(info, context=1024).max_context >= 1024
    assert fit(info, context=1024).verdict == "cpu"
    monkeypatch.setattr("octavo_engine.fitting.free_memory", lambda: 100 << 20)
    assert (fit(info).verdict, fit(info).max_context) == ("too_big", 0)
    with pytest.raises(OutOfMemory) as caught:
        require_room(info, EngineConfig())
    assert caught.value.available == 100 << 20
    assert caught.value.needed == report.weights + report.workspace


def test_what_cannot_run_has_no_fit(tmp_path: Path) -> None:
    writer = gguf.GGUFWriter(tmp_path / "other.gguf", "mamba")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    with pytest.raises(ModelLoadError, match="mamba"):
        fit(inspect(tmp_path / "other.gguf"))
