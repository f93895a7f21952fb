"""The engine in this process: an intake worker, an engine thread and one model behind the interface of `api`."""

from __future__ import annotations

import itertools
import os
import random
import threading

from octavo_engine.api import Handle, OnEvent, OnProgress
from octavo_engine.config import EngineConfig
from octavo_engine.energy.meter import find_meter
from octavo_engine.energy.tracker import EnergyTracker
from octavo_engine.engine_loop import EngineLoop
from octavo_engine.errors import InvalidRequest, closed_error
from octavo_engine.forking import Forking
from octavo_engine.handle import Inherited, LocalHandle
from octavo_engine.intake import Intake, StreamTokenizer
from octavo_engine.live import Live
from octavo_engine.metrics import Metrics
from octavo_engine.model_info import ModelInfo
from octavo_engine.ownership import belongs_to
from octavo_engine.page_fetching import PageFetching
from octavo_engine.page_map import PageMap, build_page_map
from octavo_engine.page_pool import PagePool
from octavo_engine.page_saving import PageSaving
from octavo_engine.page_store.page_store import PageStore
from octavo_engine.policy import policy_named
from octavo_engine.pool_size import check_fits, free_memory
from octavo_engine.prefix_tree import PrefixTree
from octavo_engine.report import engine_stats, page_tokens, page_views, prefix_nodes, sequence_infos
from octavo_engine.request import GenerationRequest, SamplingParams
from octavo_engine.request_check import check_request, check_sampling, configured
from octavo_engine.runner import Runner
from octavo_engine.scheduler import Scheduler
from octavo_engine.stats import EngineStats, IntegrityReport, PrefixNode, SequenceInfo


class LocalEngine:
    """Serves any number of submissions together; every method may be called from any thread."""

    def __init__(
        self,
        info: ModelInfo,
        config: EngineConfig,
        tokenizer: StreamTokenizer,
        runner: Runner,
        pool: PagePool,
        store: PageStore | None = None,
    ) -> None:
        """Start the threads over a loaded model; `open` loads one. `store` is the disk tier."""
        self._info = info
        self._config = config
        self._tokenizer = tokenizer
        self._runner = runner
        self._metrics = Metrics()
        context = min(info.context_length, config.max_context or info.context_length)
        host = PagePool(config.host_pages, pool.page_size) if config.host_pages else None
        self._scheduler = Scheduler(
            pool,
            PrefixTree(pool, host, enabled=config.prefix_cache),
            policy_named(config.policy),
            max_batch_tokens=min(config.max_batch_tokens, runner.step_tokens),
            max_running=config.max_running,
        )
        self._steer(config)
        self._store = store
        self._saving = None
        if store is not None:
            self._saving = PageSaving(store, pool, self._scheduler.tree, runner.read_page)
        self._energy = EnergyTracker(find_meter("cpu"))
        self._loop = EngineLoop(
            runner, self._scheduler, self._metrics, context=context, saving=self._saving, energy=self._energy
        )
        if store is not None:
            store.on_change = self._loop.nudge
            self._scheduler.disk = PageFetching(
                store, page_size=pool.page_size, page_bytes=runner.page_bytes, wake=self._loop.nudge
            )
        self._intake = Intake(
            tokenizer,
            pool,
            self._loop.add,
            context=context,
            vocabulary=min(info.vocab_size, tokenizer.vocab_size),
        )
        self._forking = Forking(tokenizer, pool, self._forked_handle)
        self._page_map: PageMap | None = None
        self._numbers = itertools.count(1)
        self._seeds = random.Random(config.seed)
        self._submitting = threading.Lock()
        self._closed = False
        self._loop.start()
        self._intake.start()

    @staticmethod
    def open(
        model: str | os.PathLike[str], config: EngineConfig = EngineConfig(), progress: OnProgress | None = None
    ) -> LocalEngine:
        """Load a model from a GGUF file; see `Engine.open`."""
        from octavo_engine.opening import open_model

        return LocalEngine(*open_model(model, config, progress))

    @property
    def info(self) -> ModelInfo:
        """The model."""
        return self._info

    @property
    def config(self) -> EngineConfig:
        """The settings now in force."""
        return self._config

    @property
    def tokenizer(self) -> StreamTokenizer:
        """The model's tokenizer and chat template."""
        return self._tokenizer

    @property
    def capabilities(self) -> frozenset[str]:
        """What this engine can do."""
        optional = {"swap": self._scheduler.tree.host, "disk": self._store}
        return frozenset({"fork", "pages", *(name for name, tier in optional.items() if tier is not None)})

    def submit(self, request: GenerationRequest, on_event: OnEvent | None = None) -> LocalHandle:
        """Queue a request; returns at once. `on_event` runs on an engine thread.

        Raises:
            InvalidRequest: what can be refused without the model.
            EngineClosed: the engine no longer answers.
        """
        check_request(request)
        with self._submitting:
            if self._closed:
                raise closed_error()
            seed = request.sampling.seed
            handle = LocalHandle(
                f"s{next(self._numbers)}",
                request.owner,
                request=request,
                seed=self._fresh_seed() if seed is None else seed,
                engine=self,
                answers=request.sampling.n,
                on_event=on_event,
            )
            self._begin(handle)
            self._intake.put(request, handle)
        return handle

    def wake(self) -> None:
        """Look at the handles' wishes before the next step."""
        self._loop.wake()

    def fork(
        self, parent: LocalHandle, n: int, *, at: int | None, sampling: SamplingParams | None, owner: str | None
    ) -> list[Handle]:
        """Fork the sequence of a handle of this engine; see `Handle.fork`."""
        if sampling is not None:
            check_sampling(sampling)
        with self._submitting:
            if self._closed:
                raise closed_error()
            children = self._loop.snapshot(
                lambda _: self._forking.fork(parent, n, at=at, sampling=sampling, owner=owner)
            )
            for child in children:
                self._loop.add(child)
        return [child.handle for child in children]

    def _forked_handle(self, parent: LocalHandle, owner: str, seed: int | None, inherited: Inherited) -> LocalHandle:
        handle = LocalHandle(
            f"s{next(self._numbers)}",
            owner,
            request=parent.request,
            seed=self._fresh_seed() if seed is None else seed,
            engine=self,
            inherited=inherited,
        )
        self._begin(handle)
        return handle

    def _fresh_seed(self) -> int:
        return self._seeds.getrandbits(63)

    def _begin(self, handle: LocalHandle) -> None:
        """Called for each new submission before it is queued."""

    def stats(self) -> EngineStats:
        """Counters and percentiles."""
        return self._loop.snapshot(
            lambda live: engine_stats(
                live,
                self._scheduler,
                self._metrics,
                self._runner,
                store=self._store,
                energy=self._energy,
                stall=self._loop.watchdog.report,
            )
        )

    def sequences(self) -> tuple[SequenceInfo, ...]:
        """All sequences that have not ended."""
        return self._loop.snapshot(sequence_infos)

    def configure(self, **changes: object) -> None:
        """Change settings from the next step on: those of `Engine.configure`.

        Raises:
            InvalidRequest: another setting, or a value out of range.
            OutOfMemory: pools of that size do not fit into the memory that is free.
        """

        def change(_: tuple[Live, ...]) -> None:
            config = configured(self._config, changes)
            device, host = config.kv_pages or self._scheduler.pool.total, config.host_pages or 0
            if {"kv_pages", "host_pages"} & changes.keys():
                self._check_sizes(device, host)
                self._loop.resize(device, host)
            self._config = config
            self._steer(config)

        self._loop.snapshot(change)
        self._loop.wake()

    def _check_sizes(self, device: int, host: int) -> None:
        """Refuse pools for which there is no memory: for what larger ones may take, or for moving what is held."""
        pools = [pool for pool in (self._scheduler.pool, self._scheduler.tree.host) if pool is not None]
        grows = device + host > sum(pool.total for pool in pools)
        more = device + host - sum(pool.touched for pool in pools) if grows else 0
        moved = sum(min(pool.used, size) for pool, size in zip(pools, (device, host), strict=False))
        check_fits(max(1, more, moved), page_bytes=self._runner.page_bytes, free=free_memory())

    def _steer(self, config: EngineConfig) -> None:
        """Let the scheduler follow the settings."""
        scheduler = self._scheduler
        if scheduler.policy.name != config.policy:
            scheduler.policy = policy_named(config.policy)
        scheduler.max_batch_tokens = min(config.max_batch_tokens, self._runner.step_tokens)
        scheduler.max_running = config.max_running
        scheduler.tree.enabled = config.prefix_cache
        scheduler.preemption = config.preemption
        scheduler.pacer.ttft_goal = config.ttft_goal
        scheduler.pacer.tpot_goal = config.tpot_goal

    def drop_cache(self) -> int:
        """Forget all cached pages that no sequence holds; the number of pages that became free."""
        return self._loop.snapshot(lambda _: self._scheduler.tree.clear())

    def forget(self, owner: str) -> int:
        """Drop the pages that only `owner` or an owner below it used, on device, host and disk; how many that were."""

        def forget(live: tuple[Live, ...]) -> int:
            for each in live:
                # What ends later must not bring it back.
                each.sequence.is_stored &= not belongs_to(each.sequence.owner, owner)
            if self._saving is not None:
                self._saving.forget(owner)
            return self._scheduler.tree.forget(owner)

        freed = self._loop.snapshot(forget)
        return freed + (self._store.forget(owner) if self._store is not None else 0)

    def page_map(self, since: int | None = None) -> PageMap:
        """All pages as they stand between two steps; the same map again, with its version, when nothing has changed.

        A caller that knows the map of version `since` needs to look at the new one only if its version differs.
        """
        version, tables, nodes = self._loop.snapshot(lambda _: page_views(self._scheduler))
        if self._page_map is None or self._page_map.version != version:
            pool, host = self._scheduler.pool, self._scheduler.tree.host
            self._page_map = build_page_map(
                version,
                tables,
                nodes,
                device_pages=pool.total,
                host_pages=host.total if host is not None else 0,
                page_size=pool.page_size,
            )
        return self._page_map

    def prefix_tree(self) -> tuple[PrefixNode, ...]:
        """The prefix tree, each node before its children."""
        return self._loop.snapshot(lambda _: prefix_nodes(self._scheduler))

    def page_tokens(self, index: int, pool: str = "device") -> tuple[int, ...]:
        """The tokens whose keys and values page `index` holds; none for a free page.

        Raises:
            InvalidRequest: there is no such page.
        """
        pools = {"device": self._scheduler.pool, "host": self._scheduler.tree.host}
        chosen = pools.get(pool)
        total = chosen.total if chosen is not None else 0
        if not 0 <= index < total:
            raise InvalidRequest(f"There is no page {index} in the {pool} pool, which has {total} pages.")
        return self._loop.snapshot(lambda _: page_tokens(self._scheduler, index, on_host=pool == "host"))

    def check_integrity(self) -> IntegrityReport:
        """Compare pool, page tables and sequences."""
        return IntegrityReport(self._loop.snapshot(lambda _: tuple(self._scheduler.problems())))

    def pause(self) -> None:
        """Stop stepping; submissions queue. Returns when no step is running."""
        self._loop.set_paused(True)

    def resume(self) -> None:
        """Step again."""
        self._loop.set_paused(False)

    def close(self) -> None:
        """End every submission with `EngineClosed`, give back threads and memory. Idempotent."""
        with self._submitting:
            self._closed = True
        self._intake.close()
        self._loop.close()
        if self._store is not None:
            self._store.close()
