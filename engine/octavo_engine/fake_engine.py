"""An engine without a model, for tests of what stands on it: scripted answers at a chosen pace, true page books."""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakValueDictionary

from octavo_engine.config import EngineConfig
from octavo_engine.handle import LocalHandle
from octavo_engine.local_engine import LocalEngine
from octavo_engine.model_info import ModelInfo
from octavo_engine.page_pool import PagePool
from octavo_engine.request import GenerationRequest
from octavo_engine.script_runner import ScriptRunner
from octavo_engine.tokenization.byte_tokenizer import ByteTokenizer

Script = str | Callable[[GenerationRequest], str]
_CONTEXT = 1 << 20


class FakeEngine(LocalEngine):
    """The local engine with a script in place of the model: scheduler, pages, threads and events are the real ones."""

    def __init__(
        self,
        script: Script = "This engine has no model.",
        tokens_per_second: float = 500,
        ttft: float = 0.0,
        pages: int = 256,
        fail_at: int | None = None,
        host_pages: int = 0,
    ) -> None:
        """Make an engine that answers every request with `script`.

        Args:
            script: the answer, or a function from a request to its answer. A token is a byte of UTF-8.
            tokens_per_second: pace of each sequence.
            ttft: seconds from a sequence's first step to its first token.
            pages: pages of the pool, 16 tokens each.
            fail_at: output position at which each sequence fails; None never.
            host_pages: pages of the host pool.
        """
        self._answer = script
        self._handles: WeakValueDictionary[str, LocalHandle] = WeakValueDictionary()
        runner = ScriptRunner(self._script_of, tokens_per_second=tokens_per_second, ttft=ttft, fail_at=fail_at)
        config = EngineConfig(kv_pages=pages, host_pages=host_pages)
        super().__init__(_INFO, config, ByteTokenizer(), runner, PagePool(pages, config.page_size))

    def _begin(self, handle: LocalHandle) -> None:
        self._handles[handle.id] = handle

    def _script_of(self, identifier: str) -> str:
        # Further answers to one request are named after the first: s1, s1.1, s1.2.
        request = self._handles[identifier.partition(".")[0]].request
        return self._answer if isinstance(self._answer, str) else self._answer(request)


_INFO = ModelInfo(
    path=None,
    name="Scripted",
    architecture="script",
    supported=True,
    reason=None,
    parameters=0,
    quantization="none",
    file_bytes=0,
    context_length=_CONTEXT,
    vocab_size=ByteTokenizer.vocab_size,
    layers=0,
    chat_template=None,
    features=frozenset({"system"}),
    sampling_defaults={},
    license=None,
)
