"""What the engine loop asks of a model: compute the rows of a step and draw the next tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from octavo_engine.errors import EngineError
from octavo_engine.page_move import PageMove
from octavo_engine.scheduler import Row

Drawn = int | EngineError | None


class Runner(Protocol):
    """Computes steps. Called from the engine thread only.

    Attributes:
        backend: name of the kernels that it runs on.
        weight_bytes: bytes of the weights.
        page_bytes: bytes of one KV page.
    """

    backend: str
    weight_bytes: int
    page_bytes: int

    @property
    def step_tokens(self) -> int:
        """Tokens of one step beyond which larger steps do not compute faster; the budget stays at or below it."""
        ...

    def run(self, rows: Sequence[Row], moves: Sequence[PageMove]) -> list[Drawn]:
        """Move pages, in order; then compute all positions of `rows` and draw a token for each row that samples.

        Returns:
            One entry a row: the token drawn; None when the row does not sample, or has to compute its last position
            once more because it has no token yet; an error that ends this row's sequence alone.
        """
        ...

    def resize(self, device: int, host: int, device_places: Mapping[int, int], host_places: Mapping[int, int]) -> None:
        """Make pools of so many pages; `..._places` tell the new number of each page that is kept.

        Raises:
            RuntimeError: the memory cannot be had; nothing has changed.
        """
        ...

    def read_page(self, page: int, on_host: bool) -> bytes:
        """The keys and values of a page of the device pool or the host pool: `page_bytes` bytes."""
        ...

    def close(self) -> None:
        """Give memory back."""
        ...
