"""Builds what `stats()` and `sequences()` return from the engine's books. Reads only."""

from __future__ import annotations

import time

from octavo_engine.energy.tracker import EnergyTracker
from octavo_engine.live import Live
from octavo_engine.metrics import Metrics
from octavo_engine.page_map import NodeView, TableView
from octavo_engine.page_store.page_store import PageStore
from octavo_engine.runner import Runner
from octavo_engine.scheduler import Scheduler
from octavo_engine.stats import EngineStats, PrefixNode, SequenceInfo


def engine_stats(
    live: tuple[Live, ...],
    scheduler: Scheduler,
    metrics: Metrics,
    runner: Runner,
    *,
    store: PageStore | None,
    energy: EnergyTracker,
    stall: str | None,
) -> EngineStats:
    """Counters of the whole engine."""
    pool, host = scheduler.pool, scheduler.tree.host
    tables = [sequence.table for sequence in scheduler.running]
    logical = sum(len(table.pages) for table in tables)
    shared = len({page for table in tables for page in table.pages if pool.holders(page) > 1})
    slots = pool.used * pool.page_size
    return EngineStats(
        running=len(scheduler.running),
        waiting=len(live) - len(scheduler.running),
        swapped=sum(1 for sequence in scheduler.waiting if sequence.given_up),
        steps=metrics.steps,
        tokens_per_second=metrics.tokens_per_second() if live else 0.0,
        queue_p50=metrics.percentile("queued", 0.5),
        queue_p99=metrics.percentile("queued", 0.99),
        ttft_p50=metrics.percentile("ttft", 0.5),
        ttft_p99=metrics.percentile("ttft", 0.99),
        tpot_p50=metrics.percentile("tpot", 0.5),
        tpot_p99=metrics.percentile("tpot", 0.99),
        e2e_p50=metrics.percentile("total", 0.5),
        e2e_p99=metrics.percentile("total", 0.99),
        prefix_hit_rate=metrics.cached_tokens / metrics.prompt_tokens if metrics.prompt_tokens else 0.0,
        preemptions=metrics.preemptions,
        swaps=scheduler.tree.swaps,
        recomputes=metrics.recomputes,
        evictions=scheduler.tree.evictions,
        copies_on_write=metrics.copies_on_write,
        pages={
            "free": pool.free,
            "private": pool.used - shared,
            "shared": shared,
            "cached": pool.cached,
            "swapped": host.used if host is not None else 0,
        },
        sharing=logical / pool.used if pool.used else 1.0,
        waste=1 - _filled_slots(scheduler) / slots if slots else 0.0,
        device_memory=runner.weight_bytes + pool.touched * runner.page_bytes,
        host_memory=host.touched * runner.page_bytes if host is not None else 0,
        accepted_drafts=None,
        joules_per_token=energy.joules_per_token,
        kernel_backend=runner.backend,
        disk_pages=store.pages if store is not None else 0,
        disk_bytes=store.file_bytes if store is not None else 0,
        disk_problem=(store.problem or "") if store is not None else "",
        stall=stall or "",
        energy_source=energy.source,
        energy_note=energy.note,
    )


def _filled_slots(scheduler: Scheduler) -> int:
    """Positions in the pages that tables hold that have keys and values, or get them in this step; each counts once."""
    size = scheduler.pool.page_size
    filled: dict[int, int] = {}
    for sequence in scheduler.running:
        for index, page in enumerate(sequence.table.pages):
            end = max(sequence.computed, sequence.writing) - index * size
            filled[page] = max(filled.get(page, 0), min(size, end))
    return sum(filled.values())


def page_views(scheduler: Scheduler) -> tuple[int, list[TableView], list[NodeView]]:
    """Version and contents of a page map."""
    tables = [TableView(s.owner, tuple(s.table.pages), s.computed) for s in scheduler.running]
    nodes = [
        NodeView(node.page, len(node.tokens), node.last_used, frozenset(node.owners), node.on_host)
        for node in scheduler.tree.nodes()
    ]
    return scheduler.version, tables, nodes


def prefix_nodes(scheduler: Scheduler) -> tuple[PrefixNode, ...]:
    """The prefix tree, each node before its children."""
    return tuple(
        PrefixNode(
            id=node.id,
            parent=node.parent.id if node.parent is not None and node.parent.parent is not None else None,
            tokens=len(node.tokens),
            pages=(node.page,),
            owners=tuple(sorted(node.owners)),
            last_used=node.last_used,
            pool="host" if node.on_host else "device",
        )
        for node in scheduler.tree.nodes()
    )


def page_tokens(scheduler: Scheduler, page: int, *, on_host: bool) -> tuple[int, ...]:
    """The tokens whose keys and values a page holds; none for a free page."""
    size = scheduler.pool.page_size
    if on_host:
        return scheduler.tree.tokens_of(page, on_host=True)
    for sequence in scheduler.running:
        if page in sequence.table.pages:
            start = sequence.table.pages.index(page) * size
            return tuple(sequence.tokens[start : min(start + size, sequence.computed)])
    return scheduler.tree.tokens_of(page)


def sequence_infos(live: tuple[Live, ...]) -> tuple[SequenceInfo, ...]:
    """One record for each sequence that has not ended."""
    now = time.monotonic()
    return tuple(_info(item, now) for item in live)


def _info(live: Live, now: float) -> SequenceInfo:
    sequence = live.sequence
    rate, ttft = 0.0, None
    if sequence.first_token is not None:
        ttft = sequence.first_token - sequence.submitted
        rate = (sequence.own_length - 1) / max(now - sequence.first_token, 1e-6)
    return SequenceInfo(
        id=sequence.id,
        owner=sequence.owner,
        priority=sequence.priority,
        state=sequence.state.value,
        waiting_for=sequence.waiting_for,
        prompt_tokens=sequence.prompt_length,
        computed_tokens=sequence.computed,
        cached_tokens=sequence.cached,
        completion_tokens=sequence.own_length,
        tokens_per_second=rate,
        ttft=ttft,
        pages_private=len(sequence.table.pages) - sequence.table.shared,
        pages_shared=sequence.table.shared,
    )
