"""Writes small random llama models as GGUF files with the `gguf` package, and as transformers models."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import torch
from transformers import LlamaConfig, LlamaForCausalLM

VOCABULARY = 96


def tiny_llama(
    *, heads: int = 4, kv_heads: int = 2, layers: int = 2, tied: bool = True, hidden: int = 64
) -> LlamaForCausalLM:
    """A random model; a head has `hidden / heads` dimensions."""
    torch.manual_seed(heads * 100 + kv_heads * 10 + layers)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=hidden,
        intermediate_size=96,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        max_position_embeddings=256,
        rms_norm_eps=1e-5,
        rope_theta=10_000.0,
        tie_word_embeddings=tied,
        attn_implementation="eager",
    )
    model = LlamaForCausalLM(config).eval()
    for parameter in model.parameters():
        parameter.data.normal_(0, 0.08) if parameter.dim() > 1 else parameter.data.uniform_(0.5, 1.5)
    return model


def permuted(weight: np.ndarray, heads: int) -> np.ndarray:
    """Rows of q or k in the order of llama.cpp: the two halves of each head in turns."""
    return weight.reshape(heads, 2, weight.shape[0] // heads // 2, -1).swapaxes(1, 2).reshape(weight.shape)


def write(model: LlamaForCausalLM, path: Path, *, kind: gguf.GGMLQuantizationType, **changes: object) -> None:
    """Write `model` with its matrices stored as `kind`; `changes` replace metadata."""
    config = model.config
    writer = gguf.GGUFWriter(path, "llama")
    numbers = {
        "context_length": 256,
        "embedding_length": config.hidden_size,
        "feed_forward_length": config.intermediate_size,
        "block_count": config.num_hidden_layers,
        "attention.head_count": config.num_attention_heads,
        "attention.head_count_kv": config.num_key_value_heads,
        "rope.dimension_count": config.hidden_size // config.num_attention_heads,
    } | changes
    for name, value in numbers.items():
        writer.add_uint32(f"llama.{name}", int(str(value)))
    writer.add_float32("llama.attention.layer_norm_rms_epsilon", config.rms_norm_eps)
    writer.add_float32("llama.rope.freq_base", 10_000.0)
    for name, values in tensors(model).items():
        stored = kind if values.ndim > 1 else gguf.GGMLQuantizationType.F32
        writer.add_tensor(name, gguf.quants.quantize(values, stored), raw_dtype=stored)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def tensors(model: LlamaForCausalLM) -> dict[str, np.ndarray]:
    """The model's weights by their names in the file."""
    config, state = model.config, {name: value.detach().numpy() for name, value in model.state_dict().items()}
    names = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight"}
    if not config.tie_word_embeddings:
        names["lm_head.weight"] = "output.weight"
    parts = {
        "self_attn.q_proj": "attn_q",
        "self_attn.k_proj": "attn_k",
        "self_attn.v_proj": "attn_v",
        "self_attn.o_proj": "attn_output",
        "mlp.gate_proj": "ffn_gate",
        "mlp.up_proj": "ffn_up",
        "mlp.down_proj": "ffn_down",
        "input_layernorm": "attn_norm",
        "post_attention_layernorm": "ffn_norm",
    }
    for layer in range(config.num_hidden_layers):
        names |= {
            f"model.layers.{layer}.{theirs}.weight": f"blk.{layer}.{ours}.weight" for theirs, ours in parts.items()
        }
    written = {ours: state[theirs] for theirs, ours in names.items()}
    for name, values in written.items():
        if name.endswith(("attn_q.weight", "attn_k.weight")):
            heads = config.num_attention_heads if "attn_q" in name else config.num_key_value_heads
            written[name] = permuted(values, heads)
    return written
