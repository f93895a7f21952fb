"""How an engine is opened. Plain values, checked on construction of the engine; knows no model and no tensor."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """Settings of one engine.

    Attributes:
        device: "auto" or "cpu".
        weights: layout of the weights. "auto": what is smallest without rounding beyond that of the file; "bfloat16",
            "float32"; "int8" and "int4" round matrices that are stored in more bits.
        kv_dtype: element type of the KV pages: "auto", "bfloat16" or "float32".
        page_size: token positions of a page.
        kv_pages: pages of the pool; None derives them from `kv_memory` or from the memory that is free.
        kv_memory: bytes of the pool.
        host_pages: pages of the host pool, where pages go that the device needs for others; None or 0 for none.
        page_store: folder for the pages of ended answers, found again after a restart; None for none.
        page_store_bytes: bytes that it may take; None for 4 GiB and at most a tenth of the free disk.
        max_batch_tokens: token budget of one step.
        max_running: sequences of one step.
        max_context: positions of one sequence; None takes the model's own limit.
        policy: order of admission: "fcfs", "sjf" or "priority".
        preemption: what becomes of the pages of a sequence that gives way. "auto": they stay as cache until others need
            them, then go to the host pool, or are dropped where it is full or missing; "swap": to the host pool at
            once; "recompute": dropped at once.
        batch_invariant: True makes a sequence's arithmetic independent of its company, bit for bit.
        threads: threads for computing; None takes all physical cores.
        chat_template: Jinja text, or the name of one that Octavo brings (chatml, llama2, llama3, mistral, gemma, phi3,
            zephyr, alpaca), used instead of the model's own.
        ttft_goal: seconds from submission to the first token; prompts are read in chunks as small as keep it.
        tpot_goal: seconds per token; a step in which somebody decodes reads no more of a prompt than keeps it.
        seed: where requests without a seed draw theirs from.
    """

    device: str = "auto"
    dtype: str = "auto"
    weights: Literal["auto", "bfloat16", "float32", "int8", "int4"] = "auto"
    kv_dtype: str = "auto"
    page_size: int = 16
    kv_pages: int | None = None
    kv_memory: int | None = None
    host_pages: int | None = None
    page_store: str | os.PathLike[str] | None = None
    page_store_bytes: int | None = None
    max_batch_tokens: int = 2048
    max_running: int = 64
    max_context: int | None = None
    policy: str = "priority"
    preemption: str = "auto"
    prefix_cache: bool = True
    batch_invariant: bool | Literal["auto"] = "auto"
    speculation: str = "auto"
    draft_model: str | os.PathLike[str] | None = None
    threads: int | None = None
    chat_template: str | None = None
    ttft_goal: float | None = None
    tpot_goal: float | None = None
    adapters: tuple[str, ...] = ()
    seed: int | None = None
