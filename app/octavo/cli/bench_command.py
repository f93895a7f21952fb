"""`octavo bench`: measures the engine on this machine and says which goals it reaches."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from octavo.cli.complaint import complain
from octavo.cli.exit_code import ExitCode
from octavo.engine_client import BenchReport, EngineError, draw_plots, run_bench
from octavo.library.shelf import NoModel, Shelf
from octavo.paths import Paths


@dataclass(frozen=True, slots=True)
class BenchOptions:
    """What the command line asks for."""

    suite: str
    model: str | None
    only: tuple[str, ...]
    quick: bool
    save: Path | None
    json: bool


def run_bench_command(options: BenchOptions) -> ExitCode:
    """Run the command: 0 when all goals are reached, 1 when one is missed or the engine fails, 3 without a model."""
    paths = Paths.find()
    paths.export()
    try:
        if options.save is not None:
            # What is missing for it is better known before the minutes than after them.
            draw_plots({"suite": options.suite, "machine": {}, "parts": {}}, options.save)
        report = run_bench(
            options.suite,
            Shelf(paths).find(options.model),
            parts=options.only,
            scale="quick" if options.quick else "full",
            tell=lambda line: print(f"{line} ...", file=sys.stderr, flush=True),
        )
        if options.save is not None:
            _save(report, options.save)
    except (EngineError, NoModel) as error:
        return complain(error, as_json=options.json)
    if options.json:
        print(json.dumps(report.as_dict(), ensure_ascii=False, indent=2), flush=True)
    else:
        print("\n".join(_lines(report, ())), flush=True)
    return ExitCode.OK if report.ok else ExitCode.FAILED


def _save(report: BenchReport, folder: Path) -> None:
    """Write the report as Markdown and JSON, and its plots."""
    drawn = {path.name for path in draw_plots(report.as_dict(), folder)}
    page = "\n".join(_lines(report, drawn)) + "\n"
    folder.joinpath(f"{report.suite}.md").write_text(page, encoding="utf-8")
    objects = json.dumps(report.as_dict(), ensure_ascii=False, indent=2) + "\n"
    folder.joinpath(f"{report.suite}.json").write_text(objects, encoding="utf-8")


def _lines(report: BenchReport, drawn: Collection[str]) -> Iterator[str]:
    """The report for people: Markdown, so that it can be kept as it is; `drawn` are the plots beside it."""
    yield f"# {report.suite.capitalize()}"
    yield ""
    yield ", ".join(f"{name} {value}" for name, value in report.machine.items()) + "."
    if report.scale != "full":
        yield ""
        yield "A quick look at short lengths: the goals are meant for full scale."
    for part in report.parts:
        yield from ("", f"## {part.name.capitalize()} ({part.seconds:.0f} s)", "", part.about)
        plot = f"{report.suite}-{part.name}.svg"
        if plot in drawn:
            yield from ("", f"![{part.name}]({plot})")
        for table in part.tables:
            yield from ("", f"{table.title}:", "", *_table(table.columns, table.rows))
        yield ""
        for goal in part.goals:
            sign = "reached" if goal.is_met else "MISSED"
            bound = f"{goal.comparison} {goal.bound:.4g} {goal.unit}".rstrip()
            yield f"- {sign}: {goal.name}: {goal.measured:.4g}, goal {bound}"


def _table(columns: tuple[str, ...], rows: tuple[tuple[str, ...], ...]) -> Iterator[str]:
    """A Markdown table whose columns are aligned in a terminal too: names left, numbers right."""
    widths = [max(3, *(len(row[index]) for row in (columns, *rows))) for index in range(len(columns))]

    def line(cells: tuple[str, ...]) -> str:
        first, *others = zip(cells, widths, strict=True)
        return f"| {first[0]:<{first[1]}} | " + " | ".join(f"{cell:>{width}}" for cell, width in others) + " |"

    yield line(columns)
    yield f"|-{'-' * widths[0]}-|" + "|".join(f"-{'-' * width}:" for width in widths[1:]) + "|"
    yield from map(line, rows)
