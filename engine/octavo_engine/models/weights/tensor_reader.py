"""Reads the weights of a checkpoint from its mapped files. Knows no layouts and no model."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from octavo_engine.errors import ModelLoadError
from octavo_engine.models.files.stored import Matrix, Packed, Scaled, TensorInfo
from octavo_engine.models.files.tensor_type import TensorType
from octavo_engine.models.weights.dequantize import dequantize, stored_groups
from octavo_engine.models.weights.weight_groups import GROUP, WeightGroups

# AutoAWQ packs the outputs of a word in this order.
_AWQ_ORDER = (0, 4, 1, 5, 2, 6, 3, 7)
_WIDE = {TensorType.F32: torch.float32, TensorType.F16: torch.float16, TensorType.BF16: torch.bfloat16}
# Values of a piece: what is made of them fits a processor's cache, and is little beside the model.
_PIECE = 1 << 19


class TensorReader:
    """The mapped files of a checkpoint; what it gives may lie in them, so it must not be kept beyond loading."""

    def __init__(self, files: Sequence[Path]) -> None:
        """Map the files privately: nothing is read before it is used, and nothing is ever written.

        Raises:
            ModelLoadError: a file cannot be mapped.
        """
        try:
            self._files = [
                torch.from_file(str(file), shared=False, size=file.stat().st_size, dtype=torch.uint8) for file in files
            ]
        except (OSError, RuntimeError) as fault:
            raise ModelLoadError(f"The model's files cannot be read: {fault}") from fault

    def values(self, stored: Matrix) -> torch.Tensor:
        """The numbers of a tensor in its shape, float32 or as they are stored."""
        if isinstance(stored, Packed):
            return self._unpacked(stored)
        if isinstance(stored, Scaled):
            return self._scaled(stored)
        wide = _WIDE.get(stored.type)
        if wide is not None:
            return self._view(stored, wide)
        return dequantize(self._raw(stored), stored.type, stored.shape)

    def pieces(self, stored: Matrix) -> Iterator[tuple[int, torch.Tensor]]:
        """The numbers of a tensor, some rows after others: first row and values."""
        if not isinstance(stored, TensorInfo):
            yield 0, self.values(stored)
            return
        rows = max(1, _PIECE // math.prod(stored.shape[1:]))
        for start in range(0, stored.shape[0], rows):
            yield start, self.values(stored.rows(start, min(start + rows, stored.shape[0])))

    def groups(self, stored: Matrix) -> WeightGroups | None:
        """The groups of a matrix as they are stored, without another rounding; None where it has none."""
        if isinstance(stored, TensorInfo):
            return stored_groups(self._raw(stored), stored.type, stored.shape)
        if isinstance(stored, Packed):
            return self._packed_groups(stored)
        return None

    def _raw(self, tensor: TensorInfo) -> torch.Tensor:
        return self._files[tensor.file][tensor.offset : tensor.offset + tensor.nbytes]

    def _view(self, tensor: TensorInfo, dtype: torch.dtype) -> torch.Tensor:
        raw = self._raw(tensor)
        if tensor.offset % dtype.itemsize:
            # A header of odd length moves all tensors of its file.
            raw = raw.clone()
        return raw.view(dtype).reshape(tensor.shape)

    def _scaled(self, stored: Scaled) -> torch.Tensor:
        values = self._view(stored.values, torch.float8_e4m3fn).float()
        (outputs, inputs), (rows, columns) = stored.shape, stored.block
        scales = self.values(stored.scales).float().reshape(-(-outputs // rows), -(-inputs // columns))
        wide = scales.repeat_interleave(rows, dim=0)[:outputs]
        if columns < inputs:
            wide = wide.repeat_interleave(columns, dim=1)[:, :inputs]
        return values.mul_(wide)

    def _unpacked(self, stored: Packed) -> torch.Tensor:
        quants, zeros, scales, groups = self._integers(stored)
        return ((quants - zeros[groups]) * scales[groups]).T

    def _packed_groups(self, stored: Packed) -> WeightGroups | None:
        quants, zeros, scales, groups = self._integers(stored)
        inputs, size = len(groups), len(groups) // len(scales)
        in_order = torch.equal(groups, torch.arange(inputs) // size)
        if not in_order or size % GROUP:
            return None
        # Integers of eight bits are made signed.
        middle = 128 if stored.bits == 8 else 0
        scales, zeros = (part.T.repeat_interleave(size // GROUP, dim=1) for part in (scales, zeros - middle))
        return WeightGroups((quants - middle).T.to(torch.int8).contiguous(), scales, -zeros * scales, stored.bits)

    def _integers(self, stored: Packed) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        """Integers [inputs, outputs]; zero points and scales, float32 [groups, outputs]; the group of each input."""
        words, zeros = (self._view(part, torch.int32) for part in (stored.words, stored.zeros))
        scales = self.values(stored.scales).float()
        inputs = stored.shape[1]
        order = _AWQ_ORDER if stored.method == "awq" else tuple(range(32 // stored.bits))
        quants = _unpack(words, stored.bits, order, dim=0 if stored.method == "gptq" else 1)
        unpacked_zeros = _unpack(zeros, stored.bits, order, dim=1) + stored.zero_shift
        if stored.group_of is not None:
            groups = self._view(stored.group_of, torch.int32).long()
            if groups.min() < 0 or groups.max() >= len(scales):
                raise ModelLoadError("The model is damaged: an input belongs to a group that is not there.")
        else:
            groups = torch.arange(inputs) // (inputs // len(scales))
        return quants, unpacked_zeros.float(), scales, groups


def _unpack(words: torch.Tensor, bits: int, order: Sequence[int], *, dim: int) -> torch.Tensor:
    """The integers of `bits` bits in words, those of a word next to each other along `dim`, as int32."""
    parts = torch.stack([(words >> (bits * place)) & ((1 << bits) - 1) for place in order], dim=dim + 1)
    return parts.flatten(dim, dim + 1)
