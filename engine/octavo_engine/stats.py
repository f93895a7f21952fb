"""What the engine tells about itself: statistics, sequences, integrity, load progress, devices. Immutable snapshots."""

from __future__ import annotations

from dataclasses import dataclass

from octavo_engine.request import Priority


@dataclass(frozen=True, slots=True)
class LoadProgress:
    """How far the loading of a model is: `done` of `total` in the unit of the stage (bytes, kernels)."""

    stage: str
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """A device that can run models. Memory in bytes."""

    name: str
    kind: str
    memory_total: int
    memory_free: int
    details: str = ""


@dataclass(frozen=True, slots=True)
class EngineStats:
    """One look at the engine. Times in seconds, memory in bytes; percentiles over the last finished requests.

    Attributes:
        running: sequences in the batch; `waiting` and `swapped` are outside it.
        steps: steps since the engine was opened.
        pages: number of pages by state; all are the device's but the swapped ones, which are the host's.
        sharing: logical over physical pages, 1.0 where nothing is shared.
        device_memory: bytes of the weights and of the pages that have been used so far.
        waste: empty slots over all slots of the pages in use.
        joules_per_token: energy of the device while it worked, by generated tokens; None where it does not tell.
        disk_pages: pages in `EngineConfig.page_store`; `disk_bytes` is what their files take.
        disk_problem: why no pages can be kept on disk, a sentence for people; "" when they can.
        energy_source: the meter, "RAPL" or "NVML", or "not available"; `energy_note` says why there is no figure.
        stall: why nothing has been running for more than a second while something waits; "" when all is well.
    """

    running: int
    waiting: int
    swapped: int
    steps: int
    tokens_per_second: float
    queue_p50: float | None
    queue_p99: float | None
    ttft_p50: float | None
    ttft_p99: float | None
    tpot_p50: float | None
    tpot_p99: float | None
    e2e_p50: float | None
    e2e_p99: float | None
    prefix_hit_rate: float
    preemptions: int
    swaps: int
    recomputes: int
    evictions: int
    copies_on_write: int
    pages: dict[str, int]
    sharing: float
    waste: float
    device_memory: int
    host_memory: int
    accepted_drafts: float | None
    joules_per_token: float | None
    kernel_backend: str
    disk_pages: int = 0
    disk_bytes: int = 0
    disk_problem: str = ""
    stall: str = ""
    energy_source: str = "not available"
    energy_note: str = ""


@dataclass(frozen=True, slots=True)
class SequenceInfo:
    """One sequence as it stands after a step. Counts in tokens and pages."""

    id: str
    owner: str
    priority: Priority
    state: str
    waiting_for: str | None
    prompt_tokens: int
    computed_tokens: int
    cached_tokens: int
    completion_tokens: int
    tokens_per_second: float
    ttft: float | None
    pages_private: int
    pages_shared: int


@dataclass(frozen=True, slots=True)
class PrefixNode:
    """One page of the prefix tree.

    Attributes:
        id: unique while the node lives; `parent` is another node's id, None for the first page of a beginning.
        tokens: tokens in the page.
        pages: the page, as a tuple.
        owners: names of those whose sequences computed or used it.
        last_used: the engine's clock when it was last matched or inserted.
        pool: where the page lies: "device" or "host".
    """

    id: int
    parent: int | None
    tokens: int
    pages: tuple[int, ...]
    owners: tuple[str, ...]
    last_used: int
    pool: str = "device"


@dataclass(frozen=True, slots=True)
class IntegrityReport:
    """What a check of pool, page tables and sequences found. `problems` is empty when all is well."""

    problems: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """True when nothing is wrong."""
        return not self.problems
