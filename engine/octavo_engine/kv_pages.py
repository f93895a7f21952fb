"""The tensors behind the page pools: keys and values of all device pages, and of all host pages. Knows no owners."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import torch

from octavo_engine.page_move import MoveKind, PageMove

_GATHERED = 64


class KvPages:
    """Pages [layers, 2, pages, kv_heads, page_size, head_dim] on the device and on the host.

    Address space is reserved for all of them; the memory itself is taken when a page is first written to.
    """

    def __init__(self, device: torch.Tensor, host: torch.Tensor) -> None:
        """Hold the tensors, which differ in their number of pages only."""
        self.device = device
        self._host = host

    def move(self, moves: Sequence[PageMove]) -> None:
        """Make the moves in order; neighbours between the same two pools go in one gather and one copy."""
        for kind, group in itertools.groupby(moves, key=lambda move: move.kind):
            batch = list(group)
            if kind is MoveKind.LOAD:
                for move in batch:
                    assert move.data is not None
                    page = torch.frombuffer(move.data, dtype=self.device.dtype)
                    self.device[:, :, move.target] = page.view(self.device[:, :, move.target].shape)
                continue
            if kind is MoveKind.COPY:
                # One may copy what another has just written.
                for move in batch:
                    self.device[:, :, move.target] = self.device[:, :, move.source]
                continue
            sources = torch.tensor([move.source for move in batch])
            targets = torch.tensor([move.target for move in batch])
            source, target = (self.device, self._host) if kind is MoveKind.OUT else (self._host, self.device)
            target[:, :, targets] = source[:, :, sources]

    def resize(self, device: int, host: int, device_places: Mapping[int, int], host_places: Mapping[int, int]) -> None:
        """Make pools of so many pages; `..._places` tell the new number of each page that is kept.

        Raises:
            RuntimeError: the memory cannot be had; nothing has changed.
        """
        grown = [_like(pool, pages) for pool, pages in ((self.device, device), (self._host, host))]
        for old, new, places in zip((self.device, self._host), grown, (device_places, host_places), strict=True):
            sources, targets = torch.tensor([*places.keys()]), torch.tensor([*places.values()])
            # A few at a time, since what is gathered is in memory once more.
            for start in range(0, len(places), _GATHERED):
                part = slice(start, start + _GATHERED)
                new[:, :, targets[part]] = old[:, :, sources[part]]
        self.device, self._host = grown

    def read(self, page: int, *, on_host: bool) -> bytes:
        """The bytes of a page."""
        pool = self._host if on_host else self.device
        return pool[:, :, page].contiguous().view(torch.uint8).numpy().tobytes()

    def close(self) -> None:
        """Give the memory back."""
        self.device = self._host = torch.empty(0)


def _like(pool: torch.Tensor, pages: int) -> torch.Tensor:
    """A pool of the same kind with room for `pages` pages."""
    layers, both, _, *page = pool.shape
    return torch.empty((layers, both, pages, *page), dtype=pool.dtype, device=pool.device)
