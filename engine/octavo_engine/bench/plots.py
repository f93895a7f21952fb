"""Draws a report as SVG files, one for each part. Needs matplotlib, which only developers have."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from octavo_engine.errors import InvalidRequest

Figures = Mapping[str, Any]
_ACCENT, _SECOND, _THIRD = "#2f6fdd", "#d9822b", "#9aa5b1"
_INK, _MUTED, _FAINT = "#1f2933", "#616e7c", "#e4e7eb"
_SERIES = (_ACCENT, _SECOND, _THIRD)
_WIDTH = 7.2


def draw_plots(report: Mapping[str, Any], folder: str | os.PathLike[str]) -> tuple[Path, ...]:
    """Write `<suite>-<part>.svg` for each part of a report (`BenchReport.as_dict()`) that is drawn into `folder`.

    Raises:
        InvalidRequest: matplotlib is not installed.
    """
    try:
        import matplotlib as mpl
    except ImportError as fault:
        raise InvalidRequest(
            "Plots need matplotlib; install it (`pip install matplotlib`), or leave them out."
        ) from fault
    mpl.use("svg")
    # The same report gives the same file.
    mpl.rcParams.update(
        {
            "svg.hashsalt": "octavo",
            "svg.fonttype": "none",
            "font.family": "sans-serif",
            "font.size": 10,
            "text.color": _INK,
            "axes.labelcolor": _INK,
            "xtick.color": _INK,
            "ytick.color": _INK,
        }
    )
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    written = []
    for name, part in report["parts"].items():
        if name not in _DRAWN:
            continue
        path = target / f"{report['suite']}-{name}.svg"
        figure = _DRAWN[name](part["figures"])
        figure.text(0.01, 0.01, _where(report["machine"]), fontsize=7, color=_MUTED)
        figure.savefig(path, metadata={"Date": None, "Creator": None})
        written.append(path)
    return tuple(written)


def _where(machine: Mapping[str, str]) -> str:
    return f"{machine['model']}, {machine['device']}, {machine['date']}"


def _canvas(title: str, height: float, columns: int = 1) -> tuple[Any, Sequence[Any]]:
    """A figure with its title and `columns` axes without frames."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH, height), facecolor="white")
    axes = figure.subplots(1, columns, squeeze=False)[0]
    figure.suptitle(title, x=0.01, ha="left", fontsize=12, fontweight="bold")
    for each in axes:
        each.spines[["top", "right", "left", "bottom"]].set_visible(False)
        each.tick_params(length=0)
        each.set_axisbelow(True)
    figure.subplots_adjust(left=0.085, right=0.98, top=1 - 0.85 / height, bottom=0.6 / height, wspace=0.2)
    return figure, axes


def _bars(axes: Any, names: Sequence[str], values: Sequence[float], colours: Sequence[str], shown: str) -> None:
    """Horizontal bars with their names above them and their values at their ends."""
    places = range(len(names))
    axes.barh(places, values, color=colours, height=0.42)
    for place, (name, value) in enumerate(zip(names, values, strict=True)):
        axes.text(0, place - 0.3, name, va="bottom", fontsize=9)
        axes.annotate(shown.format(value), (value, place), (4, 0), textcoords="offset points", va="center", fontsize=9)
    axes.set_yticks([])
    axes.set_xticks([])
    axes.set_xlim(0, max(values) * 1.15)
    axes.set_ylim(len(names) - 0.7, -0.7)
    axes.figure.subplots_adjust(left=0.02, top=1 - 0.4 / axes.figure.get_size_inches()[1])


def _groups(axes: Any, groups: Sequence[str], series: Mapping[str, Sequence[float]], unit: str) -> None:
    """Groups of bars, one colour a series."""
    width = 0.8 / len(series)
    for index, (name, values) in enumerate(series.items()):
        places = [group + (index - (len(series) - 1) / 2) * width for group in range(len(groups))]
        axes.bar(places, values, width * 0.9, color=_SERIES[index], label=name)
        for place, value in zip(places, values, strict=True):
            axes.text(place, value, _number(value), ha="center", va="bottom", fontsize=8)
    axes.set_xticks(range(len(groups)), groups)
    axes.set_yticks([])
    axes.set_title(unit, loc="left", fontsize=9, color=_MUTED)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _lines(axes: Any, groups: Sequence[str], series: Mapping[str, Sequence[float]]) -> None:
    """A line for each series over the groups, on a logarithmic scale."""
    for index, (name, values) in enumerate(series.items()):
        axes.plot(range(len(groups)), values, "o-", color=_SERIES[index], linewidth=1.5, markersize=5, label=name)
        for place, value in enumerate(values):
            # The second line often runs along the first: its values stand below.
            shift = (0, 6) if index != 1 else (0, -13)
            axes.annotate(_number(value), (place, value), shift, textcoords="offset points", ha="center", fontsize=8)
    axes.set_yscale("log")
    axes.minorticks_off()
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    axes.grid(axis="y", color=_FAINT, linewidth=0.8)
    axes.set_xticks(range(len(groups)), groups)
    axes.set_xlim(-0.4, len(groups) - 0.6)
    axes.margins(y=0.2)


def _legend(figure: Any, axes: Any) -> None:
    """The names of the series in a line below the title."""
    handles, labels = axes.get_legend_handles_labels()
    below = 1 - 0.28 / figure.get_size_inches()[1]
    figure.legend(
        handles, labels, loc="upper left", bbox_to_anchor=(0.0, below), ncols=len(labels), frameon=False, fontsize=9
    )


def _waste(figures: Figures) -> Any:
    figure, (axes,) = _canvas("Share of the KV cache that holds something", 2.5)
    names = [
        "pages of 16 tokens, taken on demand",
        f"the longest request reserved for each ({figures['longest']:,} tokens)",
        f"the whole context reserved for each ({figures['context']:,} tokens)",
    ]
    keys = ("used_with_pages", "used_when_longest_is_reserved", "used_when_context_is_reserved")
    _bars(axes, names, [100 * figures[key] for key in keys], (_ACCENT, _THIRD, _THIRD), "{:.1f} %")
    return figure


def _branches(figures: Figures) -> Any:
    figure, (axes,) = _canvas(
        f"Pages of {figures['branches']} branches of a history of {figures['history']:,} tokens", 2.2
    )
    names = ["shared, copied on write", "as separate chats"]
    _bars(axes, names, [figures["pages"], figures["pages_when_separate"]], (_ACCENT, _THIRD), "{:,.0f} pages")
    return figure


def _turns(figures: Figures) -> Any:
    figure, (axes,) = _canvas("First token of a new turn and of a new branch, milliseconds", 3.2)
    new = int(max(each["new_tokens"] for each in figures.values()))
    lengths = sorted({int(each["history"]) for each in figures.values()})
    names = {"turn": f"turn of {new} tokens", "branch": f"branch of {new} tokens"}
    series: dict[str, list[float]] = {name: [] for name in (*names.values(), "everything computed anew")}
    for length in lengths:
        for kind, name in names.items():
            measured = figures[f"{kind} of {new} tokens after {length:,}"]
            series[name].append(1000 * measured["ttft"])
        series["everything computed anew"].append(1000 * measured["cold_history_ttft"])
    _lines(axes, [f"{length:,} tokens of history" for length in lengths], series)
    _legend(figure, axes)
    return figure


def _batching(figures: Figures) -> Any:
    figure, (left, right) = _canvas("Continuous and static batching", 3.4, columns=2)
    loads = figures["loads"]
    names = list(next(iter(loads.values())))
    groups = [f"{load} x capacity" for load in loads]
    for axes, key, unit in ((left, "tokens_per_second", "tokens/s"), (right, "latency_mean", "mean latency, s")):
        _groups(axes, groups, {name: [loads[load][name][key] for load in loads] for name in names}, unit)
    _legend(figure, left)
    return figure


def _policies(figures: Figures) -> Any:
    figure, (left, right) = _canvas("Scheduling policies above capacity", 3.2, columns=2)
    for axes, mean, worst, unit in (
        (left, "mean", "p99", "all requests, latency in s"),
        (right, "interactive_mean", "interactive_p99", "interactive requests, latency in s"),
    ):
        series = {"mean": [each[mean] for each in figures.values()], "p99": [each[worst] for each in figures.values()]}
        _groups(axes, list(figures), series, unit)
    _legend(figure, left)
    return figure


def _swap(figures: Figures) -> Any:
    figure, (axes,) = _canvas("Time until an answer that was put aside goes on, milliseconds", 3.2)
    series = {way: [1000 * each[way] for each in figures.values()] for way in ("swap", "recompute")}
    _lines(axes, [f"{int(each['tokens']):,} tokens" for each in figures.values()], series)
    _legend(figure, axes)
    return figure


_DRAWN: dict[str, Callable[[Figures], Any]] = {
    "waste": _waste,
    "branches": _branches,
    "turns": _turns,
    "batching": _batching,
    "policies": _policies,
    "swap": _swap,
}
