"""The intake worker: turns requests into sequences, away from the caller's thread and from the engine's.

A pasted megabyte is rendered and tokenised here while every other chat goes on. Knows no scheduler and no model.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from octavo_engine import api
from octavo_engine.errors import ContextOverflow, EngineError, InvalidRequest, PromptTooLarge, closed_error
from octavo_engine.events import Failed
from octavo_engine.handle import LocalHandle
from octavo_engine.live import Live
from octavo_engine.page_pool import PagePool
from octavo_engine.page_table import PageTable
from octavo_engine.request import GenerationRequest, SamplingParams
from octavo_engine.sequence import Sequence
from octavo_engine.text_stream import TextStream

_log = logging.getLogger(__name__)


class StreamTokenizer(api.Tokenizer, Protocol):
    """A tokenizer that can also decode token by token."""

    vocab_size: int

    def token_bytes(self, token: int) -> bytes:
        """UTF-8 bytes that a token stands for; none for control tokens."""
        ...

    def begins_text(self, ids: list[int]) -> bool:
        """Whether a space at the beginning of what follows `ids` stands for the beginning of a text only."""
        ...


@dataclass(frozen=True, slots=True)
class _Submission:
    request: GenerationRequest
    handle: LocalHandle
    submitted: float


class Intake:
    """Prepares submissions one after another, so that their order is kept."""

    def __init__(
        self,
        tokenizer: StreamTokenizer,
        pool: PagePool,
        accept: Callable[[Live], None],
        *,
        context: int,
        vocabulary: int,
    ) -> None:
        """Prepare for sequences of at most `context` positions over `pool`; `accept` takes each prepared one.

        `vocabulary` is how many tokens the model knows: some tokenizers have more.
        """
        self._tokenizer = tokenizer
        self._pool = pool
        self._accept = accept
        self._context = context
        self._vocabulary = vocabulary
        self._order = 0
        self._queue: queue.SimpleQueue[_Submission | None] = queue.SimpleQueue()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="octavo-intake", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def put(self, request: GenerationRequest, handle: LocalHandle) -> None:
        """Queue a request; any thread."""
        self._queue.put(_Submission(request, handle, time.monotonic()))

    def close(self) -> None:
        """Answer what is queued with `EngineClosed` and end the thread."""
        self._closed.set()
        self._queue.put(None)
        if self._thread.ident is not None and threading.current_thread() is not self._thread:
            self._thread.join()

    def _run(self) -> None:
        while (submission := self._queue.get()) is not None:
            handle = submission.handle
            if self._closed.is_set():
                handle.push(Failed(closed_error()))
                continue
            try:
                live = self._prepare(submission)
            except EngineError as error:
                handle.push(Failed(error))
            except Exception as fault:  # noqa: BLE001 - a fault of ours in one request must not stop the others
                _log.exception("a request could not be prepared")
                handle.push(Failed(EngineError(f"The request could not be prepared ({fault!r}).")))
            else:
                self._accept(live)

    def _prepare(self, submission: _Submission) -> Live:
        request, handle = submission.request, submission.handle
        tokens = self._tokens(request)
        self._check_length(len(tokens))
        first, *siblings = [
            Live(
                self._sequence(submission, tokens, index),
                handle,
                TextStream(self._tokenizer.token_bytes, drops_space=self._tokenizer.begins_text(tokens)),
            )
            for index in range(request.sampling.n)
        ]
        first.siblings.extend(siblings)
        handle.sequence = first.sequence
        return first

    def _sequence(self, submission: _Submission, tokens: list[int], index: int) -> Sequence:
        request, handle = submission.request, submission.handle
        self._order += 1
        return Sequence(
            id=f"{handle.id}.{index}" if index else handle.id,
            owner=handle.owner,
            tokens=list(tokens),
            prompt_length=len(tokens),
            sampling=request.sampling,
            end_ids=end_ids(request.sampling, self._tokenizer),
            seed=handle.seed,
            order=self._order,
            priority=request.priority,
            is_stored=request.keep_on_disk,
            table=PageTable(self._pool),
            submitted=submission.submitted,
            index=index,
            stream=index,
        )

    def _tokens(self, request: GenerationRequest) -> list[int]:
        tokens = self._encoded(request)
        wrong = [token for token in tokens if not 0 <= token < self._vocabulary]
        if wrong:
            raise InvalidRequest(f"Token {wrong[0]} is not in the vocabulary of {self._vocabulary} tokens.")
        return tokens

    def _encoded(self, request: GenerationRequest) -> list[int]:
        if request.messages is not None:
            return self._tokenizer.apply_chat_template(
                request.messages, generation_prompt=request.generation_prompt, options=request.template_options
            )
        if request.prompt is not None:
            return self._tokenizer.encode(request.prompt, add_bos=True)
        assert request.token_ids is not None
        return list(request.token_ids)

    def _check_length(self, length: int) -> None:
        """Refuse a prompt that can never be answered, with the numbers."""
        if length >= self._context:
            raise ContextOverflow(
                f"The conversation is {length:,} tokens long and the model takes {self._context:,} with the answer; "
                "shorten it, or start a new chat.",
                needed=length + 1,
                available=self._context,
            )
        pages = self._pool.pages_for(length + 1)
        if pages > self._pool.total:
            raise PromptTooLarge(
                f"The conversation needs {pages:,} pages of memory and the pool has {self._pool.total:,}; "
                "shorten it, or give the engine more memory.",
                needed=pages,
                available=self._pool.total,
            )


def end_ids(sampling: SamplingParams, tokenizer: api.Tokenizer) -> frozenset[int]:
    """The tokens that end an answer: the model's own unless they are ignored, and the request's."""
    own = frozenset() if sampling.ignore_eos else tokenizer.eos_ids
    return own | frozenset(sampling.stop_token_ids)
