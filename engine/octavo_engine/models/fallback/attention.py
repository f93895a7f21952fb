"""Attention over KV pages for models that transformers computes: the function that it calls in every layer.

Knows no model: what a layer wants arrives with the call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import torch

import octavo_kernels as kernels
from octavo_engine.models.forward_batch import ForwardBatch

NAME = "octavo_pages"
# A position beyond all windows, and what stands for a mask that is no window.
_LATE = 1 << 17
_STRANGE = -1


@dataclass(frozen=True, slots=True)
class LayerCall:
    """What a layer asked for: heads, their sizes, and whether it has a window or sinks."""

    heads: int
    kv_heads: int
    key_size: int
    value_size: int
    window: int


@dataclass
class Recording:
    """A pass over a few tokens that only finds out what the layers ask for, by their numbers."""

    layers: dict[int, LayerCall] = field(default_factory=dict)
    oddities: set[str] = field(default_factory=set)


class PagedPass:
    """One pass over a ragged batch, whose keys and values go into pages."""

    def __init__(self, batch: ForwardBatch, kv: torch.Tensor, windows: Mapping[int, int]) -> None:
        """Prepare a pass; `kv` is [layers, 2, pages, kv_heads, page_size, head_dim], `windows` as recorded."""
        self._kv = kv
        self._windows = windows
        self._slots = torch.from_numpy(batch.slots)
        self._query_starts = torch.from_numpy(batch.query_starts)
        self._context_lengths = torch.from_numpy(batch.context_lengths)
        self._page_table = torch.from_numpy(batch.page_table).contiguous()

    def attend(
        self,
        layer: int,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        *,
        scale: float,
        cap: float,
        sinks: torch.Tensor | None,
    ) -> torch.Tensor:
        """Attend in one layer: [tokens, heads, key size], ... to [tokens, heads, value size]."""
        window = self._windows[layer]
        pages = self._kv[layer]
        _, _, kv_heads, _, width = pages.shape
        key, value = _widened(key, kv_heads, width), _widened(value, kv_heads, width)
        query = torch.nn.functional.pad(query, (0, width - query.shape[-1])).contiguous()
        kernels.write_kv(key, value, kv_layer=pages, slots=self._slots)
        if sinks is not None:
            return self._with_sinks(pages, query, scale=scale, window=window, sinks=sinks)
        out = torch.empty_like(query)
        kernels.paged_attention(
            query,
            pages,
            page_table=self._page_table,
            query_starts=self._query_starts,
            context_lengths=self._context_lengths,
            scale=scale,
            out=out,
            window=window,
            softcap=cap,
        )
        return out

    def _with_sinks(
        self, pages: torch.Tensor, query: torch.Tensor, *, scale: float, window: int, sinks: torch.Tensor
    ) -> torch.Tensor:
        """The same with a further score for each head, whose value is nothing, on pages that are gathered."""
        _, _, kv_heads, page_size, width = pages.shape
        group = query.shape[1] // kv_heads
        out = torch.empty_like(query)
        starts = self._query_starts.tolist()
        for sequence, context in enumerate(self._context_lengths.tolist()):
            rows = slice(starts[sequence], starts[sequence + 1])
            table = self._page_table[sequence, : -(-context // page_size)].long()
            gathered = pages[:, table].transpose(1, 2).reshape(2, kv_heads, -1, width)[:, :, :context].float()
            keys, values = gathered.repeat_interleave(group, dim=1)
            scores = torch.einsum("thd,hcd->htc", query[rows].float(), keys) * scale
            at = torch.arange(context - (rows.stop - rows.start), context)[:, None]
            columns = torch.arange(context)[None, :]
            hidden = columns > at
            if window:
                hidden |= columns <= at - window
            scores.masked_fill_(hidden, float("-inf"))
            extra = sinks.float().view(-1, 1, 1).expand(-1, scores.shape[1], 1)
            weights = torch.cat((scores, extra), dim=-1).softmax(dim=-1)[..., :-1]
            out[rows] = torch.einsum("htc,hcd->thd", weights, values).to(out.dtype)
        return out


def _widened(heads: torch.Tensor, kv_heads: int, width: int) -> torch.Tensor:
    """Heads [tokens, heads, size] as the pages have them: more often where there are fewer, padded with zeros."""
    heads = torch.nn.functional.pad(heads, (0, width - heads.shape[-1]))
    return heads.repeat_interleave(kv_heads // heads.shape[1], dim=1).contiguous()


# Of the thread: another one may load or compute another model meanwhile.
_RUNNING: ContextVar[PagedPass | Recording] = ContextVar("octavo_transformers_pass")


@contextmanager
def running(work: PagedPass | Recording) -> Iterator[None]:
    """Have the layers that this thread calls within do `work`."""
    token = _RUNNING.set(work)
    try:
        yield
    finally:
        _RUNNING.reset(token)


def attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    sliding_window: int | None = None,
    softcap: float | None = None,
    s_aux: torch.Tensor | None = None,
    **kwargs: Any,
) -> tuple[torch.Tensor, None]:
    """What transformers calls: query [1, heads, tokens, size], key and value [1, kv_heads, tokens, size].

    Returns:
        [1, tokens, heads, value size] and no weights.
    """
    work = _RUNNING.get()
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    layer = int(module.layer_idx)  # type: ignore[arg-type]  # a plain attribute that every attention layer has
    q, k, v = (part[0].transpose(0, 1) for part in (query, key, value))
    if isinstance(work, Recording):
        _record(work, layer, q, k, v, window=sliding_window or 0, kwargs=kwargs, mask=attention_mask)
        return v.new_zeros(1, q.shape[0], q.shape[1], v.shape[2]), None
    out = work.attend(layer, q, k, v, scale=float(scale), cap=softcap or 0.0, sinks=s_aux)
    return out[None, :, :, : v.shape[2]], None


def _record(
    work: Recording,
    layer: int,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    *,
    window: int,
    kwargs: dict[str, Any],
    mask: torch.Tensor | None,
) -> None:
    if len(k) != len(q):
        work.oddities.add("it looks at other tokens than those of its text")
    if mask is not None:
        told = int(mask.flatten()[0])
        if told == _STRANGE or (window and told != window):
            work.oddities.add("it hides tokens in a way of its own")
        # Some layers have their window in the mask alone.
        window = max(0, told)
    if kwargs.get("is_causal") is False:
        work.oddities.add("it sees what comes later in a text")
    if layer in work.layers:
        work.oddities.add("it attends twice in one layer")
    work.layers[layer] = LayerCall(q.shape[1], k.shape[1], q.shape[2], v.shape[2], window)


@contextmanager
def masks_told() -> Iterator[None]:
    """Within, layers get a mask of one number: their window, 0 for none, or a sign that it is neither."""
    from transformers import AttentionMaskInterface

    AttentionMaskInterface.register(NAME, _window_of)
    try:
        yield
    finally:
        # Without a function of this name no masks are made.
        AttentionMaskInterface._global_mapping.pop(NAME)  # noqa: SLF001  # there is no public way back


def _window_of(mask_function: Callable[..., torch.Tensor], **_: Any) -> torch.Tensor:
    """The window of a mask, from what one late position sees."""
    zero = torch.zeros((), dtype=torch.long)
    seen = mask_function(zero, zero, torch.tensor(_LATE), torch.arange(_LATE + 2))
    count = int(seen.sum())
    expected = torch.zeros(_LATE + 2, dtype=torch.bool)
    expected[_LATE + 1 - count : _LATE + 1] = True
    if not torch.equal(seen, expected):
        return torch.tensor([[[[_STRANGE]]]])
    return torch.tensor([[[[0 if count > _LATE else count]]]])


def register() -> None:
    """Make the function known to transformers; nothing where it is known."""
    from transformers import AttentionInterface

    AttentionInterface.register(NAME, attention)
