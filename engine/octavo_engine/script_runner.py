"""A runner without a model: it "draws" the tokens of a script, at a chosen pace. For `FakeEngine`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from weakref import WeakKeyDictionary

from octavo_engine.errors import EngineError
from octavo_engine.page_move import PageMove
from octavo_engine.runner import Drawn
from octavo_engine.scheduler import Row
from octavo_engine.sequence import Sequence as Generation
from octavo_engine.tokenization.byte_tokenizer import ByteTokenizer

_NAP_SECONDS = 0.002


class ScriptRunner:
    """Answers each sequence with the bytes of its script, then with the end token."""

    backend = "script"
    weight_bytes = 0
    page_bytes = 0
    step_tokens = 2048

    def __init__(
        self, script: Callable[[str], str], *, tokens_per_second: float, ttft: float, fail_at: int | None
    ) -> None:
        """Answer sequence `id` with `script(id)`.

        Args:
            script: gives the answer to the sequence of that id.
            tokens_per_second: pace of each sequence, whatever runs beside it.
            ttft: seconds from a sequence's first step to its first token.
            fail_at: output position at which each sequence fails; None never.
        """
        self._script = script
        self._seconds = 1 / tokens_per_second
        self._ttft = ttft
        self._fail_at = fail_at
        # A sequence that nobody holds any more has ended.
        self._begun: WeakKeyDictionary[Generation, tuple[float, bytes]] = WeakKeyDictionary()
        self._closed = threading.Event()

    def run(self, rows: Sequence[Row], moves: Sequence[PageMove]) -> list[Drawn]:
        """Take a step's time and give each row its next token."""
        started = time.monotonic()
        drawn = [self._draw(row, started) for row in rows]
        pause = self._seconds if any(token is not None for token in drawn) else _NAP_SECONDS
        self._closed.wait(max(0.0, started + pause - time.monotonic()))
        return drawn

    def _draw(self, row: Row, now: float) -> Drawn:
        sequence = row.sequence
        if sequence not in self._begun:
            self._begun[sequence] = now, self._script(sequence.id).encode("utf-8", errors="replace")
        begun, text = self._begun[sequence]
        if not row.samples or (sequence.output_length == 0 and now < begun + self._ttft):
            return None
        position = sequence.output_length
        if position == self._fail_at:
            return EngineError(f"The script of this engine fails at token {position}.")
        return text[position] if position < len(text) else next(iter(ByteTokenizer.eos_ids))

    def resize(self, device: int, host: int, device_places: Mapping[int, int], host_places: Mapping[int, int]) -> None:
        """Nothing: pages are books only."""

    def read_page(self, page: int, on_host: bool) -> bytes:
        """Nothing: pages are books only."""
        return b""

    def close(self) -> None:
        """End a pause at once and forget the scripts."""
        self._closed.set()
        self._begun.clear()
