"""Finds packed matrices in Hugging Face checkpoints: GPTQ, AWQ and 8-bit floating point. Loads no torch.

Formats: the `quantization_config` of config.json as transformers documents it; AutoGPTQ, AutoAWQ and DeepSeek-V3 for
how the tensors lie.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from octavo_engine.errors import ModelLoadError
from octavo_engine.models.files.stored import Packed, Scaled, TensorInfo
from octavo_engine.models.files.tensor_type import TensorType
from octavo_engine.models.specification.stated_values import shown

_METHODS = ("gptq", "awq", "fp8", "compressed-tensors")
# FP8 checkpoints name their scales so: DeepSeek's (blocks), compressed-tensors' (rows or one).
_SCALES = ("weight_scale_inv", "weight_scale")


@dataclass(frozen=True, slots=True)
class Quantization:
    """How the matrices of a checkpoint are packed.

    Attributes:
        method: "gptq", "awq" or "fp8".
        bits: of a packed integer.
        zero_shift: what is added to stored zero points.
        block: outputs and inputs that share a scale of "fp8"; None where their number tells.
    """

    method: str
    bits: int
    zero_shift: int
    block: tuple[int, int] | None = None

    def matrix(
        self, module: str, part: str, tensors: Mapping[str, TensorInfo]
    ) -> tuple[Packed | Scaled, set[str]] | None:
        """The packed matrix of a module and the tensors that it consists of; None where it is not packed.

        Raises:
            ModelLoadError: its parts do not fit together.
        """
        if part != "weight":
            return None
        if self.method == "fp8":
            return self._scaled(module, tensors)
        if f"{module}.qweight" not in tensors:
            return None
        names = {role: f"{module}.{role}" for role in ("qweight", "qzeros", "scales")}
        missing = [name for name in names.values() if name not in tensors]
        if missing:
            raise ModelLoadError(f"The model lacks the tensor {missing[0]!r}. Get another copy of this model.")
        order = tensors.get(f"{module}.g_idx")
        packed = Packed(
            method=self.method,
            bits=self.bits,
            zero_shift=self.zero_shift,
            words=tensors[names["qweight"]],
            zeros=tensors[names["qzeros"]],
            scales=tensors[names["scales"]],
            group_of=order,
        )
        _check_packed(module, packed)
        return packed, {*names.values(), f"{module}.g_idx"}

    def _scaled(self, module: str, tensors: Mapping[str, TensorInfo]) -> tuple[Scaled, set[str]] | None:
        values = tensors.get(f"{module}.weight")
        if values is None or values.type != TensorType.F8_E4M3:
            return None
        scale = next((name for name in _SCALES if f"{module}.{name}" in tensors), None)
        if scale is None:
            raise ModelLoadError(f"The model lacks the scales of {module!r}. Get another copy of this model.")
        scales = tensors[f"{module}.{scale}"]
        scaled = Scaled(values, scales, self._block(module, values, scales))
        # Scales of activations are for other ways of computing.
        return scaled, {f"{module}.weight", f"{module}.{scale}", f"{module}.input_scale", f"{module}.activation_scale"}

    def _block(self, module: str, values: TensorInfo, scales: TensorInfo) -> tuple[int, int]:
        """The block of a matrix: as stated, a row, or all of it."""
        count = math.prod(scales.shape)
        if len(values.shape) != 2:
            raise _unfit(module)
        outputs, inputs = values.shape
        for block in (self.block, (1, inputs), (outputs, inputs)):
            if block is not None and -(-outputs // block[0]) * -(-inputs // block[1]) == count:
                return block
        raise _unfit(module)


def quantization_of(config: Mapping[str, Any]) -> Quantization | None:
    """How a checkpoint is packed; None where it is not.

    Raises:
        ModelLoadError: in a way that Octavo does not read.
    """
    stated = config.get("quantization_config")
    if not isinstance(stated, Mapping):
        return None
    method = stated.get("quant_method")
    if method not in _METHODS:
        raise ModelLoadError(
            f"The model is packed by {shown(method)}, which this Octavo does not read. It reads GPTQ, AWQ and FP8; get "
            "one of these, a GGUF file, or the model as it was trained."
        )
    if method == "fp8":
        return Quantization("fp8", 8, 0, _stated_block(stated))
    if method == "compressed-tensors":
        return _compressed(stated)
    bits = stated.get("bits")
    if not isinstance(bits, int) or bits not in ((4, 8) if method == "gptq" else (4,)):
        raise ModelLoadError(f"The model is packed in {shown(bits)} bits by {method}; this Octavo reads 4 bits.")
    if method == "awq" and stated.get("version", "gemm") != "gemm":
        raise ModelLoadError(f"The model is packed for AWQ's {shown(stated.get('version'))}; this Octavo reads gemm.")
    first_format = method == "gptq" and stated.get("checkpoint_format", "gptq") == "gptq"
    return Quantization(method, bits, int(first_format))


def _stated_block(stated: Mapping[str, Any]) -> tuple[int, int] | None:
    block = stated.get("weight_block_size")
    if block is None:
        return None
    if not isinstance(block, list) or len(block) != 2 or not all(isinstance(size, int) and size > 0 for size in block):
        raise ModelLoadError(f"The model's config.json states the block {shown(block)}, which cannot be.")
    return (block[0], block[1])


def _compressed(stated: Mapping[str, Any]) -> Quantization:
    """compressed-tensors: of its many formats, the one that is plain FP8."""
    form = stated.get("format")
    if form != "float-quantized":
        raise ModelLoadError(
            f"The model is packed in the form {shown(form)} of compressed-tensors; this Octavo reads float-quantized."
        )
    return Quantization("fp8", 8, 0)


def _check_packed(module: str, packed: Packed) -> None:
    if not len(packed.words.shape) == len(packed.zeros.shape) == len(packed.scales.shape) == 2:
        raise _unfit(module)
    outputs, inputs = packed.shape
    groups = packed.scales.shape[0]
    fits = (
        packed.words.type == packed.zeros.type == TensorType.I32
        and packed.scales.shape == (groups, outputs)
        and packed.zeros.shape == (groups, outputs * packed.bits // 32)
        and groups > 0
        and inputs % groups == 0
        and (packed.group_of is None or packed.group_of.shape == (inputs,))
    )
    if not fits:
        raise _unfit(module)


def _unfit(module: str) -> ModelLoadError:
    return ModelLoadError(f"The model is damaged: the parts of {module!r} do not fit together. Download it again.")
