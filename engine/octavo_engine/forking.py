"""Makes forks: new sequences whose tokens begin like another's. Knows no pages; the scheduler shares them."""

from __future__ import annotations

import time
from collections.abc import Callable

from octavo_engine.errors import InvalidRequest
from octavo_engine.handle import Inherited, LocalHandle
from octavo_engine.intake import StreamTokenizer, end_ids
from octavo_engine.live import Live
from octavo_engine.page_pool import PagePool
from octavo_engine.page_table import PageTable
from octavo_engine.request import SamplingParams
from octavo_engine.sequence import Sequence
from octavo_engine.text_stream import TextStream

NewHandle = Callable[[LocalHandle, str, int | None, Inherited], LocalHandle]


class Forking:
    """Makes the forks of one engine."""

    def __init__(self, tokenizer: StreamTokenizer, pool: PagePool, new_handle: NewHandle) -> None:
        """Make forks over `pool`; `new_handle(parent, owner, seed, inherited)` makes their handles."""
        self._tokenizer = tokenizer
        self._pool = pool
        self._new_handle = new_handle

    def fork(
        self, parent: LocalHandle, n: int, *, at: int | None, sampling: SamplingParams | None, owner: str | None
    ) -> list[Live]:
        """`n` sequences that go on from the first `at` output tokens of `parent`; see `Handle.fork`.

        Raises:
            InvalidRequest: n is not positive, the answer has not begun, or has fewer tokens than `at`.
        """
        if n < 1:
            raise InvalidRequest(f"n is {n}; it must be at least 1.")
        origin = parent.sequence
        if origin is None:
            raise InvalidRequest("The answer has not begun; ask again, or fork it when its first words are there.")
        kept = origin.output_length if at is None else at
        if not 0 <= kept <= origin.output_length:
            raise InvalidRequest(f"at is {kept}; the answer has {origin.output_length} tokens so far.")
        return [self._child(parent, origin, kept, stream, sampling=sampling, owner=owner) for stream in range(n)]

    def _child(
        self,
        parent: LocalHandle,
        origin: Sequence,
        kept: int,
        stream: int,
        *,
        sampling: SamplingParams | None,
        owner: str | None,
    ) -> Live:
        tokens = origin.tokens[: origin.prompt_length + kept]
        output = tokens[origin.prompt_length :]
        begins = self._tokenizer.begins_text(origin.tokens[: origin.prompt_length])
        text = TextStream(self._tokenizer.token_bytes, drops_space=begins)
        inherited = Inherited(tuple(output), "".join(map(text.push, output)))
        seed = sampling.seed if sampling is not None else None
        handle = self._new_handle(parent, parent.owner if owner is None else owner, seed, inherited)
        chosen = origin.sampling if sampling is None else sampling
        handle.sequence = Sequence(
            id=handle.id,
            owner=handle.owner,
            tokens=tokens,
            prompt_length=origin.prompt_length,
            inherited=kept,
            sampling=chosen,
            end_ids=end_ids(chosen, self._tokenizer),
            seed=handle.seed,
            stream=stream,
            order=origin.order,
            priority=origin.priority,
            is_stored=origin.is_stored,
            table=PageTable(self._pool),
            submitted=time.monotonic(),
        )
        return Live(handle.sequence, handle, text, parent=origin)
