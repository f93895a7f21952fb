"""The engine's interface: what the application holds, whichever engine is behind it. Knows no implementation."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from octavo_engine.config import EngineConfig
from octavo_engine.events import Completion, Event
from octavo_engine.model_info import ModelInfo
from octavo_engine.request import GenerationRequest, Message, Priority, SamplingParams
from octavo_engine.stats import EngineStats, IntegrityReport, LoadProgress, PrefixNode, SequenceInfo

if TYPE_CHECKING:
    from octavo_engine.page_map import PageMap

OnEvent = Callable[[Event], None]
OnProgress = Callable[[LoadProgress], bool | None]


class Tokenizer(Protocol):
    """Text to tokens and back."""

    @property
    def bos_id(self) -> int | None:
        """The token that begins a text, if the model has one."""
        ...

    @property
    def eos_ids(self) -> frozenset[int]:
        """All tokens that end a turn or a text."""
        ...

    def encode(self, text: str, *, add_bos: bool = False, parse_special: bool = True) -> list[int]:
        """Tokens of a text; with `parse_special` control tokens in it are recognised, otherwise they stay text."""
        ...

    def decode(self, ids: Sequence[int], *, skip_special: bool = False) -> str:
        """Text of tokens; incomplete characters become U+FFFD."""
        ...

    def count(self, text_or_messages: str | Sequence[Message | Mapping[str, Any]]) -> int:
        """Number of tokens of a text or of a rendered conversation."""
        ...

    def apply_chat_template(
        self,
        messages: Sequence[Message | Mapping[str, Any]],
        *,
        tools: Sequence[Any] | None = None,
        generation_prompt: bool = True,
        options: Mapping[str, Any] | None = None,
    ) -> list[int]:
        """Tokens of a conversation. The text of messages never becomes control tokens.

        Raises:
            TemplateError: the model has no template, or it is broken or rejects these messages.
        """
        ...


class Handle(Protocol):
    """One submission, from any thread."""

    @property
    def id(self) -> str:
        """Unique within the engine."""
        ...

    @property
    def owner(self) -> str:
        """The caller's key."""
        ...

    @property
    def state(self) -> str:
        """One of queued, prefill, running, swapped, paused, done."""
        ...

    def events(self, timeout: float | None = None) -> Iterator[Event]:
        """The events from the start, read once; `timeout` seconds for each, then TimeoutError."""
        ...

    def result(self, timeout: float | None = None) -> Completion:
        """Wait for the end.

        Raises:
            TimeoutError: not ended within `timeout` seconds; nothing has changed.
            EngineError: what the submission failed with.
        """
        ...

    def done(self) -> bool:
        """True after the last event."""
        ...

    def cancel(self) -> None:
        """End within a step with reason "cancelled"; the text so far stands."""
        ...

    def pause(self) -> None:
        """Leave the batch and keep the pages."""
        ...

    def resume(self) -> None:
        """Come back into the batch."""
        ...

    def swap_out(self) -> None:
        """Move the pages to host memory."""
        ...

    def set_priority(self, priority: Priority) -> None:
        """Change the priority from the next step on."""
        ...

    def fork(
        self, n: int = 1, *, at: int | None = None, sampling: SamplingParams | None = None, owner: str | None = None
    ) -> list[Handle]:
        """New sequences that share this one's pages, with its first `at` output tokens (default: all known now)."""
        ...


class Engine(Protocol):
    """Runs one model for any number of submissions at once."""

    @staticmethod
    def open(
        model: str | os.PathLike[str], config: EngineConfig = EngineConfig(), progress: OnProgress | None = None
    ) -> Engine:
        """Load a model and start its engine thread; blocks until it is ready.

        Args:
            model: a GGUF file.
            config: settings of the engine.
            progress: called with `LoadProgress`; returning False cancels the load.

        Raises:
            ModelLoadError: missing, damaged or unsupported.
            OutOfMemory: weights and pages do not fit.
            LoadCancelled: `progress` returned False.
            InvalidRequest: a setting out of range or not of this version.
        """
        from octavo_engine.local_engine import LocalEngine

        return LocalEngine.open(model, config, progress)

    @property
    def info(self) -> ModelInfo:
        """The model."""
        ...

    @property
    def config(self) -> EngineConfig:
        """The settings now in force."""
        ...

    @property
    def tokenizer(self) -> Tokenizer:
        """The model's tokenizer and chat template."""
        ...

    @property
    def capabilities(self) -> frozenset[str]:
        """What this engine can do, of fork, pages, swap, grammar, logprobs and others."""
        ...

    def submit(self, request: GenerationRequest, on_event: OnEvent | None = None) -> Handle:
        """Queue a request; returns at once. `on_event` runs on the engine thread.

        Raises:
            InvalidRequest: what can be refused without the model.
            EngineClosed: the engine no longer answers.
        """
        ...

    def stats(self) -> EngineStats:
        """Counters and percentiles."""
        ...

    def sequences(self) -> tuple[SequenceInfo, ...]:
        """All sequences that have not ended."""
        ...

    def configure(self, **changes: object) -> None:
        """Change settings from the next step on.

        policy, preemption, max_batch_tokens, max_running, kv_pages, host_pages, prefix_cache, ttft_goal, tpot_goal. A
        pool that shrinks drops cached pages first; then answers give way, as where memory is short.

        Raises:
            InvalidRequest: another setting, or a value out of range.
            OutOfMemory: pools of that size do not fit into the memory that is free.
        """
        ...

    def drop_cache(self) -> int:
        """Forget all cached pages that no sequence holds; the number of pages that became free."""
        ...

    def forget(self, owner: str) -> int:
        """Drop the pages that only `owner` or an owner below it used, on device, host and disk; how many that were.

        Owners are paths: `chat/leaf` lies below `chat`.
        """
        ...

    def page_map(self, since: int | None = None) -> PageMap:
        """All pages as they stand between two steps; the same map again, with its version, when nothing has changed."""
        ...

    def prefix_tree(self) -> tuple[PrefixNode, ...]:
        """The prefix tree, each node before its children."""
        ...

    def page_tokens(self, index: int, pool: str = "device") -> tuple[int, ...]:
        """The tokens whose keys and values a page holds; none for a free page."""
        ...

    def check_integrity(self) -> IntegrityReport:
        """Compare pool, page tables and sequences."""
        ...

    def pause(self) -> None:
        """Stop stepping; submissions queue. Returns when no step is running."""
        ...

    def resume(self) -> None:
        """Step again."""
        ...

    def close(self) -> None:
        """End every submission with `EngineClosed`, give back threads and memory. Idempotent."""
        ...
