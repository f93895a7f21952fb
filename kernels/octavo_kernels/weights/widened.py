"""Products with many rows: blocks of a packed matrix are widened to bfloat16, so that it is never held twice."""

from __future__ import annotations

import torch

from octavo_kernels.operations.widen_groups import widen_groups

# Weights of a block: widened, they stay in a cache until they are multiplied.
BLOCK = 1 << 21
_SCRATCH: dict[torch.dtype, torch.Tensor] = {}


def widened_product(
    x: torch.Tensor, integers: torch.Tensor, *, scales: torch.Tensor, offsets: torch.Tensor | None
) -> torch.Tensor:
    """[tokens, inputs] -> [tokens, outputs]; arguments as of `group_product`. For one caller at a time."""
    tokens, columns = x.shape
    outputs = len(integers)
    blocks = -(-outputs * columns // BLOCK)
    step = -(-outputs // blocks)
    scratch = _scratch(step * columns, x.dtype)
    out = torch.empty(tokens, outputs, dtype=x.dtype)
    for start in range(0, outputs, step):
        part = slice(start, min(start + step, outputs))
        weight = scratch[: (part.stop - start) * columns].view(-1, columns)
        widen_groups(
            integers[part], scales=scales[part], offsets=None if offsets is None else offsets[part], out=weight
        )
        product = torch.nn.functional.linear(x, weight)
        if part.stop - start == outputs:
            return product
        out[:, part] = product
    return out


def _scratch(numbers: int, dtype: torch.dtype) -> torch.Tensor:
    scratch = _SCRATCH.get(dtype)
    if scratch is None or scratch.numel() < numbers:
        scratch = _SCRATCH[dtype] = torch.empty(max(numbers, BLOCK), dtype=dtype)
    return scratch
