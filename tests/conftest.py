"""What every test gets: a data folder of its own, no screen and no network; and the starter model where asked for."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

# Read by Qt when the first application is made, so it must stand before any test is imported.
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
# A test that asks a model hub is a fault; with this it fails at once instead of waiting for a time-out.
os.environ["HF_HUB_OFFLINE"] = "1"

STARTER_MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"


@pytest.fixture(autouse=True)
def octavo_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty OCTAVO_HOME, so that no test meets another's files or the user's."""
    home = tmp_path / "octavo-home"
    monkeypatch.setenv("OCTAVO_HOME", str(home))
    return home


@pytest.fixture(scope="session")
def starter_model() -> Path:
    """The starter model that the set-up puts beside the program. Its absence fails the test."""
    path = Path(sys.prefix) / "share" / "octavo" / "models" / STARTER_MODEL
    if not path.is_file():
        pytest.fail(f"{path} is missing; run `python3 packaging/dev.py setup`", pytrace=False)
    return path
