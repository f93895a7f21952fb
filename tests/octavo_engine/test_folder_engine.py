"""An engine over a Hugging Face folder: answers, chat template, cancelled and failed loads."""

from __future__ import annotations

import gc
import re
import threading
from pathlib import Path

import pytest
import torch

from octavo_engine import (
    Engine,
    EngineConfig,
    GenerationRequest,
    LoadCancelled,
    LoadProgress,
    Message,
    ModelLoadError,
    SamplingParams,
)
from tiny_families import tiny_model
from tiny_tokenizer import save_tokenizer

# The table has more rows than the tokenizer has tokens, as in many models.
ROWS = 400


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("folders") / "Tiny-Qwen3"
    model = tiny_model("qwen3", vocab_size=ROWS, num_hidden_layers=2)
    # No bf16 rounding may decide: what is stored is exact in both.
    for parameter in model.parameters():
        parameter.data = parameter.data.bfloat16().float()
    model.generation_config.eos_token_id = None
    model.save_pretrained(path)
    save_tokenizer(path, ROWS - 30)
    return path


def test_greedy_answers_equal_those_of_transformers(folder: Path) -> None:
    model = tiny_model("qwen3", vocab_size=ROWS, num_hidden_layers=2)
    for parameter in model.parameters():
        parameter.data = parameter.data.bfloat16().float()
    engine = Engine.open(folder, EngineConfig(weights="float32", kv_pages=64))
    try:
        assert (engine.info.name, engine.info.architecture) == ("Tiny Qwen3", "qwen3")
        sampling = SamplingParams(temperature=0, max_tokens=24, ignore_eos=True)
        answers = [
            engine.submit(GenerationRequest(messages=[Message("user", text)], sampling=sampling)).result(timeout=60)
            for text in ("Hello there", "def f(x): return <|end|>")
        ]
        for text, answer in zip(("Hello there", "def f(x): return <|end|>"), answers, strict=True):
            prompt = engine.tokenizer.apply_chat_template([Message("user", text)])
            assert prompt.count(0) == 1, "a user's text became a control token"
            tokens = [*prompt, *answer.token_ids]
            with torch.inference_mode():
                logits = model(torch.tensor([tokens])).logits[0, len(prompt) - 1 : -1]
            assert tuple(logits.argmax(-1).tolist()) == answer.token_ids
            assert answer.text == engine.tokenizer.decode(answer.token_ids, skip_special=True)
    finally:
        engine.close()


@pytest.mark.parametrize("weights", ["auto", "int8", "int4"])
def test_other_layouts_answer_too(folder: Path, weights: str) -> None:
    engine = Engine.open(folder, EngineConfig(weights=weights, kv_pages=64))  # type: ignore[arg-type]
    try:
        sampling = SamplingParams(temperature=1.0, max_tokens=40, ignore_eos=True, seed=1)
        result = engine.submit(GenerationRequest(prompt="Once", sampling=sampling)).result(timeout=60)
        assert len(result.token_ids) == 40
        assert engine.check_integrity().ok
        layouts = engine._runner._decoder.describe_layouts()  # type: ignore[attr-defined]
        assert all(("rounded" in line) == (weights != "auto") for line in layouts), layouts
    finally:
        engine.close()


def maps(path: Path) -> int:
    """How often a file is mapped into this process."""
    return Path("/proc/self/maps").read_text().count(str(path))


@pytest.mark.parametrize("stage", ["header", "kernels", "weights"])
def test_a_cancelled_load_leaves_nothing_behind(folder: Path, stage: str) -> None:
    seen: list[LoadProgress] = []

    def progress(step: LoadProgress) -> bool:
        seen.append(step)
        return not (step.stage == stage and (stage != "weights" or step.done > step.total // 2))

    threads = threading.active_count()
    with pytest.raises(LoadCancelled):
        Engine.open(folder, EngineConfig(kv_pages=64), progress)
    assert seen[-1].stage == stage
    assert all(0 <= step.done <= step.total for step in seen)
    gc.collect()
    assert maps(folder) == 0
    assert threading.active_count() == threads


def test_progress_tells_all_bytes(folder: Path) -> None:
    seen: list[LoadProgress] = []
    engine = Engine.open(folder, EngineConfig(kv_pages=64), lambda step: seen.append(step))
    engine.close()
    weights = [step for step in seen if step.stage == "weights"]
    assert weights[0].done == 0
    assert weights[-1].done == weights[-1].total
    stored = (folder / "model.safetensors").stat().st_size
    assert 0.8 * stored < weights[-1].total <= stored
    assert [step.done for step in weights] == sorted(step.done for step in weights)
    gc.collect()
    assert maps(folder) == 0


def test_a_folder_without_tokenizer_says_so(folder: Path, tmp_path: Path) -> None:
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).symlink_to(folder / name)
    with pytest.raises(ModelLoadError, match=re.escape("tokenizer.json")):
        Engine.open(tmp_path)
