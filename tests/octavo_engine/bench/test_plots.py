"""Plots are drawn from a report, the same each time, with what it says in them."""

from pathlib import Path

import pytest

from octavo_engine import InvalidRequest, draw_plots

REPORT = {
    "suite": "paging",
    "machine": {"model": "m.gguf", "device": "a processor", "date": "2026-01-01"},
    "parts": {
        "waste": {
            "figures": {
                "used_with_pages": 0.98,
                "used_when_longest_is_reserved": 0.33,
                "used_when_context_is_reserved": 0.06,
                "longest": 1536,
                "context": 8192,
            }
        },
        "branches": {"figures": {"pages": 298, "pages_when_separate": 4064, "branches": 16, "history": 4000}},
        "turns": {
            "figures": {
                f"{kind} of 48 tokens after 500": {
                    "history": 500,
                    "new_tokens": 48,
                    "ttft": 0.08,
                    "cold_history_ttft": 0.6,
                }
                for kind in ("turn", "branch")
            }
        },
        "batching": {
            "figures": {
                "loads": {
                    "2": {
                        name: {"tokens_per_second": 100.0, "latency_mean": 3.0}
                        for name in ("continuous", "static, padded", "static, unpadded")
                    }
                }
            }
        },
        "policies": {
            "figures": {
                name: {"mean": 1.0, "p99": 2.0, "interactive_mean": 1.0, "interactive_p99": 2.0}
                for name in ("fcfs", "sjf", "priority")
            }
        },
        "swap": {"figures": {"500": {"tokens": 500, "swap": 0.03, "recompute": 0.4}}},
    },
}


def test_every_part_is_drawn_alike_each_time(tmp_path: Path) -> None:
    written = draw_plots(REPORT, tmp_path / "a")
    assert [path.name for path in written] == [f"paging-{part}.svg" for part in REPORT["parts"]]
    again = draw_plots(REPORT, tmp_path / "b")
    assert [path.read_bytes() for path in written] == [path.read_bytes() for path in again]
    for path in written:
        assert "m.gguf, a processor, 2026-01-01" in path.read_text()
    assert "98.0 %" in written[0].read_text()
    assert "4,064 pages" in written[1].read_text()


def test_without_matplotlib_there_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    with pytest.raises(InvalidRequest, match="matplotlib"):
        draw_plots(REPORT, tmp_path)
