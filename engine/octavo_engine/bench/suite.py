"""Runs a suite part by part."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from octavo_engine.bench.models import opening_time
from octavo_engine.bench.opening import OpenEngine, machine
from octavo_engine.bench.paging import batching, branches, policies, swapping, turns, waste
from octavo_engine.bench.report import BenchReport, PartResult
from octavo_engine.bench.scale import SCALES, Scale
from octavo_engine.errors import InvalidRequest

_log = logging.getLogger(__name__)
Measure = Callable[[OpenEngine, Scale], PartResult]
Tell = Callable[[str], None]


def _layouts(open_engine: OpenEngine, scale: Scale) -> PartResult:
    # Loads torch, which the engine's public names must not.
    from octavo_engine.bench.models import layouts

    return layouts.measure(open_engine, scale)


_SUITES: dict[str, dict[str, Measure]] = {
    "paging": {
        "waste": waste.measure,
        "branches": branches.measure,
        "turns": turns.measure,
        "batching": batching.measure,
        "policies": policies.measure,
        "swap": swapping.measure,
    },
    "models": {
        "opening": opening_time.measure,
        "layouts": _layouts,
    },
}


def run_bench(
    suite: str,
    model: str | os.PathLike[str],
    *,
    parts: Sequence[str] = (),
    scale: str = "full",
    tell: Tell = _log.info,
) -> BenchReport:
    """Measure a suite on a model; minutes at full scale.

    Args:
        suite: "paging" or "models".
        model: a model file.
        parts: names of the parts to run; none for all.
        scale: "full" or "quick"; the goals mean something at full scale only.
        tell: called with a line before each part.

    Raises:
        InvalidRequest: no such suite, part or scale.
        ModelLoadError: the model cannot be opened.
    """
    if suite not in _SUITES:
        raise InvalidRequest(f"There is no suite {suite!r}; choose one of {', '.join(_SUITES)}.")
    if scale not in SCALES:
        raise InvalidRequest(f"There is no scale {scale!r}; choose one of {', '.join(SCALES)}.")
    known = _SUITES[suite]
    for name in parts:
        if name not in known:
            raise InvalidRequest(f"The suite {suite} has no part {name!r}; choose among {', '.join(known)}.")
    path = Path(model)
    results = []
    for name, measure in known.items():
        if not parts or name in parts:
            tell(f"Measuring {name}")
            begun = time.monotonic()
            result = measure(OpenEngine(path), SCALES[scale])
            results.append(replace(result, seconds=time.monotonic() - begun))
    return BenchReport(suite, scale, machine(path), tuple(results))
