"""Packs the matrices of a saved checkpoint as GPTQ, AWQ and FP8 do: the papers' formulas, the projects' layouts."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from transformers import PreTrainedModel

GROUP = 32
# Divides neither side of the matrices.
BLOCK = 20


def pack(model: PreTrainedModel, folder: Path, method: str, *, group: int = GROUP, in_order: bool = True) -> None:
    """Round all matrices of the layers to what `method` can hold, in the model and in the checkpoint saved to `folder`.

    "gptq", "gptq-v2" and "gptq-8": with `in_order` False, inputs belong to groups in a shuffled order (act-order);
    "awq"; "fp8-blocks", "fp8-rows" and "fp8-one".
    """
    packed: dict[str, torch.Tensor] = {}
    for name, module in model.named_modules():
        if isinstance(module, torch.nn.Linear) and module is not model.get_output_embeddings():
            module.weight.data, parts = _packed(module.weight.data, method, group, in_order)
            packed |= {f"{name}.{part}": values.contiguous() for part, values in parts.items()}
    model.save_pretrained(folder)
    tensors = load_file(folder / "model.safetensors")
    kept = {name: values for name, values in tensors.items() if not name.endswith("proj.weight")}
    tensors = kept | packed
    save_file(tensors, folder / "model.safetensors")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"quantization_config": _stated(method, group)}))


def _stated(method: str, group: int) -> dict[str, object]:
    if method.startswith("gptq"):
        bits = 8 if method.endswith("8") else 4
        form = {"checkpoint_format": "gptq_v2"} if method == "gptq-v2" else {}
        return {"quant_method": "gptq", "bits": bits, "group_size": group, **form}
    if method == "awq":
        return {"quant_method": "awq", "bits": 4, "group_size": group, "version": "gemm", "zero_point": True}
    if method == "fp8-blocks":
        return {"quant_method": "fp8", "weight_block_size": [BLOCK, BLOCK]}
    return {"quant_method": "compressed-tensors", "format": "float-quantized"}


def _packed(
    weight: torch.Tensor, method: str, group: int, in_order: bool
) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """The rounded weights [outputs, inputs] and the tensors that hold them."""
    if method.startswith("fp8"):
        return _fp8(weight, method)
    bits = 8 if method.endswith("8") else 4
    outputs, inputs = weight.shape
    groups = torch.arange(inputs) // group
    if not in_order:
        groups = groups[torch.randperm(inputs, generator=torch.Generator().manual_seed(inputs))]
    scales = torch.empty(inputs // group, outputs)
    zeros = torch.empty(inputs // group, outputs, dtype=torch.int64)
    quants = torch.empty(outputs, inputs, dtype=torch.int64)
    for index in range(inputs // group):
        mine = groups == index
        # A power of two survives float16 and a second rounding.
        scale = 2.0 ** (weight[:, mine].abs().amax(1).clamp(min=1e-6).log2().ceil() - bits + 1)
        zero = (1 << (bits - 1)) - 1 + torch.arange(outputs) % 2
        scales[index], zeros[index] = scale, zero
        rounded = (weight[:, mine] / scale[:, None]).round() + zero[:, None]
        quants[:, mine] = rounded.clamp(0, (1 << bits) - 1).long()
    values = (quants - zeros[groups].T) * scales[groups].T
    if method == "awq":
        parts = {"qweight": _awq_words(quants.T), "qzeros": _awq_words(zeros), "scales": scales.half()}
    else:
        shift = 0 if method == "gptq-v2" else 1
        parts = {
            "qweight": _words(quants.T, bits, dim=0),
            "qzeros": _words(zeros - shift, bits, dim=1),
            "scales": scales.half(),
            "g_idx": groups.int(),
        }
    return values, parts


def _fp8(weight: torch.Tensor, method: str) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    size = {"fp8-blocks": BLOCK, "fp8-rows": weight.shape[1], "fp8-one": weight.numel()}[method]
    if method == "fp8-blocks":
        scales = torch.full((-(-weight.shape[0] // size), -(-weight.shape[1] // size)), 2.0**-7)
        scales[0] *= 2
        wide = scales.repeat_interleave(size, 0).repeat_interleave(size, 1)[: weight.shape[0], : weight.shape[1]]
        name = "weight_scale_inv"
    else:
        count = weight.shape[0] if method == "fp8-rows" else 1
        scales = 2.0 ** (torch.arange(count) % 3 - 8.0)[:, None]
        wide, name = scales.expand_as(weight), "weight_scale"
        scales = scales if method == "fp8-rows" else scales.reshape(1)
    small = (weight / wide).to(torch.float8_e4m3fn)
    return small.float() * wide, {"weight": small, name: scales}


def _words(integers: torch.Tensor, bits: int, *, dim: int) -> torch.Tensor:
    per_word = 32 // bits
    parts = integers.reshape(*integers.shape[:dim], -1, per_word, *integers.shape[dim + 1 :])
    shifts = bits * torch.arange(per_word)
    shape = [1] * parts.dim()
    shape[dim + 1] = per_word
    return _int32((parts << shifts.view(shape)).sum(dim + 1))


def _awq_words(integers: torch.Tensor) -> torch.Tensor:
    """AutoAWQ puts output 2 next to output 0, then 4, 6, 1, 3, 5, 7."""
    parts = integers.reshape(len(integers), -1, 8)[..., [0, 2, 4, 6, 1, 3, 5, 7]]
    return _int32((parts << (4 * torch.arange(8))).sum(-1))


def _int32(words: torch.Tensor) -> torch.Tensor:
    return torch.where(words >= 1 << 31, words - (1 << 32), words).to(torch.int32)
