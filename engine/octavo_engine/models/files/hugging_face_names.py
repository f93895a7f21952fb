"""The names that Hugging Face checkpoints give to the tensors of a decoder. Loads no torch."""

from __future__ import annotations

from octavo_engine.models.specification.model_spec import ModelSpec

_OUTSIDE = {"token_embd": "embed_tokens", "output_norm": "norm"}
_ATTENTION = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_qkv": "self_attn.qkv_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
}
_FEED_FORWARD = {"ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
_EXPERTS = {"ffn_gate_exps": 1, "ffn_up_exps": 2, "ffn_down_exps": 3}


def module_name(spec: ModelSpec, name: str) -> str:
    """The module behind a GGUF tensor, without `model.` and `.weight`: "layers.0.self_attn.q_proj".

    For a tensor of experts the name has `{}` in place of the expert's number.
    """
    stem = name.rpartition(".")[0]
    if not stem.startswith("blk."):
        return _OUTSIDE[stem]
    _, layer, part = stem.split(".")
    return f"layers.{layer}.{_within_layer(spec, part)}"


def _within_layer(spec: ModelSpec, part: str) -> str:
    architecture = spec.architecture
    block, *matrices = architecture.expert_names
    if part in architecture.norms:
        return architecture.norms[part]
    if part == "ffn_gate_inp":
        return f"{block}.gate"
    if part in _EXPERTS:
        return f"{block}.experts.{{}}.{matrices[_EXPERTS[part] - 1]}"
    if part == "ffn_up" and architecture.fused:
        return "mlp.gate_up_proj"
    return _ATTENTION.get(part) or _FEED_FORWARD[part]
