"""`octavo doctor`: what runs here, where its files lie, and whether a model answers. Writes nothing but caches."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

from octavo.cli.complaint import complain
from octavo.cli.exit_code import ExitCode
from octavo.cli.progress_line import ProgressLine
from octavo.engine_client import Examination, examine
from octavo.library.shelf import NoModel, Shelf
from octavo.paths import Paths, starter_model

_GIB = 1 << 30


def run_doctor(model: str | None, *, as_json: bool) -> ExitCode:
    """Run the command: 0 when a model answered, 1 when it did not, 3 where there is none."""
    paths = Paths.find()
    paths.export()
    path: Path | None = None
    missing: NoModel | None = None
    try:
        path = Shelf(paths).find(model)
    except NoModel as error:
        # Without a model there is still much to say, unless one was named that is not there.
        if model is not None:
            return complain(error, as_json=as_json)
        missing = error
    line = ProgressLine(path.stem if path else "")
    try:
        found = examine(path, line.update)
    finally:
        line.clear()
    if as_json:
        print(json.dumps(_object(found, paths), ensure_ascii=False, indent=2), flush=True)
    else:
        print("\n".join(_lines(found, paths)), flush=True)
    if missing is not None:
        return complain(missing, as_json=False)
    return ExitCode.OK if found.self_test is not None and found.self_test.ok else ExitCode.FAILED


def _files(paths: Paths) -> dict[str, Path | None]:
    return {
        "home": paths.home,
        "database": paths.database,
        "models": paths.models,
        "cache": paths.cache,
        "starter_model": starter_model(),
    }


def _object(found: Examination, paths: Paths) -> dict[str, object]:
    """The report for programs: the examination, with Octavo's own version and files."""
    report = dataclasses.asdict(found)
    packages = {package.name: package.version for package in found.packages}
    test = found.self_test
    return {
        "ok": test is not None and test.ok,
        "versions": {
            "octavo": version("octavo"),
            "python": report.pop("python"),
            **packages,
            "PySide6": version("PySide6-Essentials"),
        },
        "paths": {name: None if path is None else str(path) for name, path in _files(paths).items()},
        **{name: value for name, value in report.items() if name != "packages"},
    }


def _lines(found: Examination, paths: Paths) -> Iterator[str]:
    """The report for people."""
    yield f"Octavo {version('octavo')}, Python {found.python}, {found.platform}"
    packages = [f"{package.name} {package.version or '(not installed)'}" for package in found.packages]
    yield f"Libraries: {', '.join(packages)}, PySide6 {version('PySide6-Essentials')}"
    yield "Devices:"
    for device in found.devices:
        free, total = device.memory_free / _GIB, device.memory_total / _GIB
        yield f"  {device.kind}: {device.name}, {free:.1f} of {total:.1f} GiB free, {device.details}"
    kernels = found.kernels
    yield f"Kernels: {kernels.threads}; kept in {kernels.folder or 'no folder'} ({kernels.reason})"
    for choice in kernels.choices:
        why = f" (passed over: {'; '.join(choice.declined)})" if choice.declined else ""
        yield f"  {choice.operation} on {choice.device}: {choice.chosen}{why}"
    for kernel in kernels.compiled:
        yield f"  {kernel.name}: {'read' if kernel.was_cached else 'compiled'} in {kernel.seconds:.2f} s"
    yield f"Energy: {found.energy}"
    yield "Files:"
    for name, path in _files(paths).items():
        yield f"  {name.replace('_', ' ')}: {path or 'none'}"
    yield from _test_lines(found)


def _test_lines(found: Examination) -> Iterator[str]:
    test = found.self_test
    if test is None:
        yield "Self-test: not run, there is no model"
    elif test.error is not None:
        yield f"Self-test: failed. {test.error}"
    elif test.problems:
        yield f"Self-test: failed. The page books are wrong: {'; '.join(test.problems)}"
    else:
        speed = "" if test.tokens_per_second is None else f", {test.tokens_per_second:.0f} tokens/s"
        yield f"Self-test: passed. Loaded in {test.load:.1f} s, first token after {test.ttft:.2f} s{speed}:"
        yield f"  {test.text}"
