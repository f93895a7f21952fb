"""Seconds and memory from `Engine.open` to the first accepted submission, each time in a process of its own."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys

from octavo_engine.bench.goal import Goal
from octavo_engine.bench.opening import OpenEngine
from octavo_engine.bench.report import PartResult, table
from octavo_engine.bench.scale import Scale

# Prints one JSON object: seconds by stage, bytes of anonymous memory.
_PROCESS = """
import json, re, sys, threading, time
begun = time.perf_counter()
import torch
imported = time.perf_counter()
import octavo_kernels
octavo_kernels.warm()
warmed = time.perf_counter()
from octavo_engine import Engine, EngineConfig, GenerationRequest, SamplingParams
with open(sys.argv[1], "rb") as file:
    while file.read(1 << 24):
        pass

def anonymous():
    with open("/proc/self/status") as status:
        return int(re.search(r"RssAnon:\\s+(\\d+)", status.read())[1]) << 10

peak, done = 0, False
def watch():
    global peak
    while not done:
        peak = max(peak, anonymous())
        time.sleep(0.002)

before = anonymous()
watcher = threading.Thread(target=watch)
watcher.start()
stages = {}
start = time.perf_counter()
def progress(step):
    stages.setdefault(step.stage, time.perf_counter() - start)
engine = Engine.open(sys.argv[1], EngineConfig(kv_pages=512), progress)
opened = time.perf_counter() - start
handle = engine.submit(GenerationRequest(prompt="Hello", sampling=SamplingParams(max_tokens=1)))
accepted = time.perf_counter() - start
done = True
watcher.join()
after = anonymous()
handle.result()
engine.close()
print(json.dumps({
    "torch": imported - begun, "kernels": warmed - imported, "header": stages["header"], "tokenizer": stages["kernels"],
    "weights": stages["weights"], "opened": opened, "accepted": accepted,
    "before": before, "peak": peak, "after": after,
}))
"""
_LIMIT = 1.0
_PEAK = 1.3
_MB = 1e6


def measure(open_engine: OpenEngine, scale: Scale) -> PartResult:
    """Open the model several times with a warm file cache, torch imported and kernels compiled."""
    runs = [_run(str(open_engine.model)) for _ in range(scale.openings)]
    median = {key: statistics.median(run[key] for run in runs) for key in runs[0]}
    stages = [
        ("header and what it says", median["tokenizer"] - median["header"]),
        ("weights", median["opened"] - median["weights"]),
        ("all, to the first accepted submission", median["accepted"]),
        ("beside it: import torch", median["torch"]),
        ("beside it: read compiled kernels", median["kernels"]),
    ]
    grown = [(run["peak"] - run["before"]) / (run["after"] - run["before"]) for run in runs]
    rows = [
        ("before opening", median["before"] / _MB),
        ("at the most", median["peak"] / _MB),
        ("after opening", median["after"] / _MB),
    ]
    figures = {"runs": runs, "median": median, "peak_to_after": grown}
    return PartResult(
        name="opening",
        about=f"Medians of {len(runs)} processes, warm file cache. The header's time holds the tokenizer; the weights' "
        "the page pool.",
        figures=figures,
        tables=(
            table("Seconds", ("", "s"), stages),
            table("Anonymous memory of the process", ("", "MB"), rows),
        ),
        goals=(
            Goal("time to the first accepted submission", median["accepted"], "<=", _LIMIT, "s"),
            Goal("peak memory over what stays", statistics.median(grown), "<=", _PEAK),
        ),
    )


def _run(model: str) -> dict[str, float]:
    done = subprocess.run([sys.executable, "-c", _PROCESS, model], capture_output=True, text=True, check=True)
    run: dict[str, float] = json.loads(done.stdout)
    return run
