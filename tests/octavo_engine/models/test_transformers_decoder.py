"""Architectures beyond our own decoder run through transformers over pages, or say why not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import (
    CohereConfig,
    DeepseekV3Config,
    Exaone4Config,
    GPT2Config,
    GPTNeoXConfig,
    GptOssConfig,
    JambaConfig,
    MambaConfig,
    NemotronConfig,
    OlmoConfig,
    PhiConfig,
    PhimoeConfig,
    PreTrainedConfig,
    PreTrainedModel,
    StableLmConfig,
    Starcoder2Config,
)
from transformers.models.auto.modeling_auto import AutoModelForCausalLM

from octavo_engine import (
    Engine,
    EngineConfig,
    GenerationRequest,
    InvalidRequest,
    LoadCancelled,
    ModelLoadError,
    SamplingParams,
    fit,
    inspect,
)
from octavo_engine.models.fallback.decoder import TransformersDecoder
from octavo_engine.models.fallback.loading import load_transformers_decoder, transformers_obstacle
from ragged import batch, stale_pages
from tiny_families import VOCABULARY, reference, tiny_model
from tiny_tokenizer import save_tokenizer

WINDOW = 24
TOKENS = np.random.default_rng(3).integers(1, VOCABULARY, 75).tolist()
PAGES = [9, 3, 17, 30, 2]
_SIZES: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
FAMILIES: dict[str, tuple[type[PreTrainedConfig], dict[str, Any]]] = {
    "gpt-neox": (GPTNeoXConfig, {}),
    "stablelm": (StableLmConfig, {}),
    "starcoder2": (Starcoder2Config, {"sliding_window": WINDOW}),
    "cohere": (CohereConfig, {}),
    "phi": (PhiConfig, {}),
    "olmo": (OlmoConfig, {}),
    "nemotron": (NemotronConfig, {}),
    # Its window stands in the mask alone.
    "phimoe": (PhimoeConfig, {"sliding_window": WINDOW, "num_local_experts": 4, "num_experts_per_tok": 2}),
    "gpt-oss": (
        GptOssConfig,
        {"head_dim": 16, "sliding_window": WINDOW, "num_local_experts": 4, "num_experts_per_tok": 2},
    ),
    "exaone4": (Exaone4Config, {"sliding_window": WINDOW, "sliding_window_pattern": 2}),
    "deepseek-v3": (
        DeepseekV3Config,
        {
            "num_key_value_heads": 4,
            "q_lora_rank": 32,
            "kv_lora_rank": 32,
            "qk_rope_head_dim": 8,
            "qk_nope_head_dim": 16,
            "v_head_dim": 16,
            "n_routed_experts": 8,
            "n_group": 2,
            "topk_group": 1,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 32,
            "first_k_dense_replace": 1,
        },
    ),
}


def make(config: type[PreTrainedConfig], changes: dict[str, Any], folder: Path) -> PreTrainedModel:
    """A random model, saved to a folder."""
    torch.manual_seed(5)
    model = AutoModelForCausalLM.from_config(config(**(_SIZES | changes)), attn_implementation="eager").eval().float()
    for parameter in model.parameters():
        parameter.data.normal_(0, 0.1) if parameter.dim() > 1 else parameter.data.uniform_(0.5, 1.5)
    model.save_pretrained(folder)
    return model


def load(folder: Path, **options: Any) -> TransformersDecoder:
    defaults: dict[str, Any] = {"dtype": "float32", "max_context": None, "progress": None}
    return load_transformers_decoder(folder, **(defaults | options))


def assert_close(ours: torch.Tensor, theirs: torch.Tensor) -> None:
    wrong = (ours - theirs).abs().amax(-1) / theirs.abs().amax(-1)
    assert wrong.max() <= 1e-4, f"{wrong.max():.2e} at position {int(wrong.argmax())}"


@pytest.mark.parametrize("name", FAMILIES)
def test_logits_over_pages_equal_those_of_transformers(tmp_path: Path, name: str) -> None:
    model = make(*FAMILIES[name], tmp_path)
    expected = reference(model, TOKENS)
    decoder = load(tmp_path)
    assert (decoder.vocab_size, decoder.context_length, decoder.layers) == (VOCABULARY, 256, 2)
    assert "transformers" in decoder.describe_layouts()[0]
    whole = decoder.forward(batch([(TOKENS, 0, PAGES)], every=True), stale_pages(decoder))  # type: ignore[arg-type]
    assert_close(whole, expected)
    for chunk in (7, 16):
        pages = stale_pages(decoder)  # type: ignore[arg-type]
        for start in range(0, len(TOKENS), chunk):
            stop = min(start + chunk, len(TOKENS))
            part = decoder.forward(batch([(TOKENS[:stop], start, PAGES)], every=True), pages)
            assert_close(part, expected[start:stop])
    other = TOKENS[::-1][:40]
    both = decoder.forward(batch([(other, 0, [1, 4, 0]), (TOKENS, 0, PAGES)]), stale_pages(decoder))  # type: ignore[arg-type]
    assert_close(both, torch.stack((reference(model, other)[-1], expected[-1])))
    silent = batch([(TOKENS, 0, PAGES)])
    object.__setattr__(silent, "logit_rows", np.empty(0, np.int32))
    assert decoder.forward(silent, stale_pages(decoder)).shape == (0, VOCABULARY)  # type: ignore[arg-type]


@pytest.mark.parametrize("config", [MambaConfig, JambaConfig], ids=["mamba", "jamba"])
def test_what_pages_cannot_hold_is_refused_by_name(tmp_path: Path, config: type[PreTrainedConfig]) -> None:
    sizes = {name: _SIZES[name] for name in ("vocab_size", "hidden_size", "num_hidden_layers")}
    extra = {} if config is MambaConfig else {"mamba_dt_rank": 4, "use_mamba_kernels": False, "num_experts": 2}
    AutoModelForCausalLM.from_config(config(**sizes, **extra)).save_pretrained(tmp_path)
    with pytest.raises(ModelLoadError, match=config.model_type) as caught:
        load(tmp_path)
    assert "llama" in str(caught.value)


def test_what_nobody_runs_names_the_nearest(tmp_path: Path) -> None:
    tiny_model("qwen2", num_hidden_layers=1).save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"model_type": "qwenn9"}))
    info = inspect(tmp_path)
    assert not info.supported
    assert "qwenn9" in str(info.reason)
    assert "qwen2" in str(info.reason)
    assert transformers_obstacle({"model_type": "gpt_neox"}) is None
    assert "None" in str(transformers_obstacle({}))


def test_a_missing_tensor_is_not_made_up(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    make(*FAMILIES["stablelm"], tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    del tensors["model.layers.1.self_attn.k_proj.weight"]
    save_file(tensors, tmp_path / "model.safetensors", {"format": "pt"})
    with pytest.raises(ModelLoadError, match="k_proj"):
        load(tmp_path)


def test_loading_tells_how_far_it_is_and_can_be_cancelled(tmp_path: Path) -> None:
    make(*FAMILIES["stablelm"], tmp_path)
    seen: list[tuple[str, int, int]] = []
    load(tmp_path, progress=lambda *step: seen.append(step))
    assert seen[0][1] == 0
    assert seen[-1][1] == seen[-1][2] == (tmp_path / "model.safetensors").stat().st_size
    assert len(seen) > 10
    with pytest.raises(LoadCancelled):
        load(tmp_path, progress=lambda _stage, done, total: done < total // 2)
    # The hook is gone: what others load is not counted here.
    count = len(seen)
    AutoModelForCausalLM.from_pretrained(tmp_path)
    assert len(seen) == count


def test_sizes_under_older_names(tmp_path: Path) -> None:
    sizes = {"n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 256, "vocab_size": 300, "n_inner": None}
    torch.manual_seed(5)
    AutoModelForCausalLM.from_config(GPT2Config(**sizes)).save_pretrained(tmp_path)
    save_tokenizer(tmp_path, 280)
    info = inspect(tmp_path)
    assert (info.context_length, info.layers, info.vocab_size) == (256, 2, 300)
    report = fit(info, EngineConfig(weights="float32"))
    engine = Engine.open(tmp_path, EngineConfig(weights="float32"))
    try:
        assert engine.info.context_length == 256
        assert report.kv_per_token == engine._runner._decoder.kv_bytes_per_token  # type: ignore[attr-defined]
        sampling = SamplingParams(temperature=0, max_tokens=4, ignore_eos=True)
        assert (
            len(engine.submit(GenerationRequest(prompt="Hello", sampling=sampling)).result(timeout=60).token_ids) == 4
        )
    finally:
        engine.close()


def test_an_engine_runs_it_and_says_so(tmp_path: Path) -> None:
    config, sizes = FAMILIES["stablelm"]
    model = make(config, sizes | {"vocab_size": 300, "eos_token_id": None}, tmp_path)
    info = inspect(tmp_path)
    assert (info.supported, info.runs_on, info.architecture) == (True, "transformers", "stablelm")
    with pytest.raises(ModelLoadError, match="tokenizer"):
        Engine.open(tmp_path)
    save_tokenizer(tmp_path, 280)
    with pytest.raises(InvalidRequest, match="weights"):
        Engine.open(tmp_path, EngineConfig(weights="int8"))
    report = fit(info, EngineConfig(weights="float32"))
    engine = Engine.open(tmp_path, EngineConfig(weights="float32", kv_pages=32, page_store=tmp_path / "pages"))
    try:
        sampling = SamplingParams(temperature=0, max_tokens=20, ignore_eos=True)
        handles = [engine.submit(GenerationRequest(prompt=text, sampling=sampling)) for text in ("Hello", "A tree is")]
        for text, handle in zip(("Hello", "A tree is"), handles, strict=True):
            prompt, answer = engine.tokenizer.encode(text), handle.result(timeout=60)
            best = reference(model, [*prompt, *answer.token_ids])[len(prompt) - 1 : -1, :280].argmax(-1)
            assert tuple(best.tolist()) == answer.token_ids
        assert report.kv_per_token == engine._runner._decoder.kv_bytes_per_token  # type: ignore[attr-defined]
        assert abs(report.weights - engine._runner.weight_bytes) < 0.05 * report.weights  # type: ignore[attr-defined]
    finally:
        engine.close()
