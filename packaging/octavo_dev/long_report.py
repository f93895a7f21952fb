"""The page that `test --long` leaves under docs/benchmarks: what ran, when, on which commit, and how long it took."""

from __future__ import annotations

import platform
import subprocess
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path


@dataclass(frozen=True, slots=True)
class TestResult:
    """One test: outcome is passed, failed or skipped."""

    name: str
    outcome: str
    seconds: float


def read_results(junit: Path) -> tuple[TestResult, ...]:
    """Results from pytest's JUnit file, slowest first."""
    results = []
    for case in ElementTree.parse(junit).getroot().iter("testcase"):
        tags = {child.tag for child in case}
        outcome = "failed" if tags & {"failure", "error"} else "skipped" if "skipped" in tags else "passed"
        name = f"{case.get('classname', '')}::{case.get('name', '')}"
        results.append(TestResult(name, outcome, float(case.get("time", "0"))))
    return tuple(sorted(results, key=lambda result: -result.seconds))


def write_report(results: tuple[TestResult, ...], page: Path, root: Path, *, shown: int = 40) -> None:
    """Write the page: totals, every failed or skipped test, and the slowest `shown` of the rest."""
    counts = {word: sum(result.outcome == word for result in results) for word in ("passed", "failed", "skipped")}
    today = datetime.now(tz=UTC).date().isoformat()
    lines = [
        "# Long tests",
        "",
        "Written by `python3 packaging/dev.py test --long`, which runs every test including those that take minutes.",
        "",
        f"Date: {today}. Commit: {_commit(root)}. Python {platform.python_version()}, {platform.system()}.",
        f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped.",
        "",
        "| test | result | seconds |",
        "|---|---|---:|",
    ]
    notable = [result for result in results if result.outcome != "passed"]
    slowest = [result for result in results if result.outcome == "passed"][:shown]
    lines += [f"| {result.name} | {result.outcome} | {result.seconds:.1f} |" for result in (*notable, *slowest)]
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _commit(root: Path) -> str:
    try:
        found = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"], cwd=root, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        return "unknown (no git here)"
    return found.stdout.strip() or "unknown (not a git checkout)"
