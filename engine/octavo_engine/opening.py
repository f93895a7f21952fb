"""Opens a model: header, tokenizer, kernels, weights, page pool, in that order, telling how far it is. Loads torch."""

from __future__ import annotations

import dataclasses
import logging
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import torch

import octavo_kernels
from octavo_engine.api import OnProgress
from octavo_engine.config import EngineConfig
from octavo_engine.devices import physical_cores
from octavo_engine.errors import InvalidRequest, LoadCancelled, ModelLoadError
from octavo_engine.fitting import require_room
from octavo_engine.inspection import checkpoint_of, describe, read_model
from octavo_engine.kv_pages import KvPages
from octavo_engine.model_info import ModelInfo
from octavo_engine.model_runner import ModelRunner
from octavo_engine.models.decoder import Decoder
from octavo_engine.models.files.folder_checkpoint import ModelFolder
from octavo_engine.models.files.gguf_checkpoint import GgufModel
from octavo_engine.models.weights.loader import Progress, load_decoder
from octavo_engine.page_pool import PagePool
from octavo_engine.page_store.opening import open_page_store
from octavo_engine.page_store.page_store import PageStore
from octavo_engine.pool_size import free_memory, pool_size
from octavo_engine.request_check import check_config
from octavo_engine.stats import LoadProgress
from octavo_engine.tokenization.folder_tokenizer import FolderTokenizer
from octavo_engine.tokenization.gguf_tokenizer import GgufTokenizer
from octavo_engine.tokenization.model_tokenizer import ModelTokenizer

if TYPE_CHECKING:
    from octavo_engine.models.fallback.decoder import TransformersDecoder

_log = logging.getLogger(__name__)


def open_model(
    model: str | os.PathLike[str], config: EngineConfig, progress: OnProgress | None
) -> tuple[ModelInfo, EngineConfig, ModelTokenizer, ModelRunner, PagePool, PageStore | None]:
    """Everything that an engine needs to run a model; see `Engine.open` for the errors."""
    check_config(config)
    report = _Report(progress)
    started = time.perf_counter()
    report.stage("header", 0, 1)
    found = read_model(model)
    info = describe(found, Path(model))
    if info.reason is not None:
        raise ModelLoadError(info.reason)
    require_room(info, config)
    tokenizer: ModelTokenizer
    if isinstance(found, ModelFolder):
        tokenizer = FolderTokenizer(found.path, config.chat_template)
    else:
        tokenizer = GgufTokenizer(found.header.metadata, config.chat_template)
    torch.set_num_threads(config.threads or physical_cores())
    octavo_kernels.warm(lambda done, total: report.stage("kernels", done, total))
    decoder = _load(found, info, config, report.stage)
    if info.runs_on == "transformers":
        # A configuration may state them under names of its own.
        info = dataclasses.replace(info, context_length=decoder.context_length, vocab_size=decoder.vocab_size)
    if config.kv_dtype not in ("auto", str(decoder.kv_dtype).removeprefix("torch.")):
        raise InvalidRequest(f"KV pages are kept in the dtype of the weights here, {decoder.kv_dtype}; leave kv_dtype.")
    pages = pool_size(
        config,
        page_bytes=decoder.kv_bytes_per_token * config.page_size,
        context=min(info.context_length, config.max_context or info.context_length),
        free=free_memory(),
    )
    tensors = [
        torch.empty(decoder.kv_shape(count, config.page_size), dtype=decoder.kv_dtype)
        for count in (pages, config.host_pages or 0)
    ]
    runner = ModelRunner(
        decoder, KvPages(*tensors), page_size=config.page_size, backend=_backend(), vocabulary=tokenizer.vocab_size
    )
    store = open_page_store(
        config,
        found.sources,
        page_bytes=runner.page_bytes,
        arithmetic={
            "kernels": octavo_kernels.identity(),
            "backend": runner.backend,
            "layouts": "; ".join(decoder.describe_layouts()),
            "kv": f"{decoder.kv_dtype} {decoder.kv_shape(1, config.page_size)}",
        },
    )
    _log.info("opened %s with %d pages in %.2f s", info.name, pages, time.perf_counter() - started)
    return info, config, tokenizer, runner, PagePool(pages, config.page_size), store


def _load(
    found: GgufModel | ModelFolder, info: ModelInfo, config: EngineConfig, progress: Progress
) -> Decoder | TransformersDecoder:
    """The decoder that runs a model."""
    if info.runs_on == "octavo":
        return load_decoder(
            checkpoint_of(found),
            weights=config.weights,
            batch_invariant=config.batch_invariant is True,
            max_context=config.max_context,
            progress=progress,
        )
    # Loading the library takes seconds.
    from octavo_engine.models.fallback.loading import load_transformers_decoder

    assert isinstance(found, ModelFolder), "GGUF files are no business of transformers"
    if config.weights in ("int4", "int8") or config.batch_invariant is True:
        raise InvalidRequest(
            f"{info.name} is computed by transformers, which keeps weights as bfloat16 or float32 and sums rows in "
            'company: leave weights and batch_invariant at "auto".'
        )
    _log.info("%s is of the architecture %s: transformers computes it, slower", info.name, info.architecture)
    dtype: Literal["float32", "bfloat16"] = "float32" if config.weights == "float32" else "bfloat16"
    return load_transformers_decoder(found.path, dtype=dtype, max_context=config.max_context, progress=progress)


class _Report:
    """Passes progress on and turns a False into `LoadCancelled`."""

    def __init__(self, progress: OnProgress | None) -> None:
        self._progress = progress

    def stage(self, name: str, done: int, total: int) -> bool:
        if self._progress is not None and self._progress(LoadProgress(name, done, total)) is False:
            raise LoadCancelled("Loading the model was cancelled.")
        return True


def _backend() -> str:
    """The attention kernel and the device that it runs on, for people."""
    chosen = {backend.operation: backend.chosen for backend in octavo_kernels.backends("cpu")}
    return f"cpu, {chosen['paged_attention']}"
