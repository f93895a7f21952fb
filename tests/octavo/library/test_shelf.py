"""The shelf shows files, folders and models in parts once each, and finds them by path or name."""

from __future__ import annotations

from pathlib import Path

import pytest

from octavo.library.shelf import NoModel, Shelf
from octavo.paths import Paths


@pytest.fixture
def shelf(octavo_home: Path) -> Shelf:
    models = octavo_home / "models"
    folder = models / "Tiny-Qwen2.5"
    folder.mkdir(parents=True)
    for path in (
        models / "One.Q4_K_M.gguf",
        models / "Big-00001-of-00002.gguf",
        models / "Big-00002-of-00002.gguf",
        models / "notes.txt",
        folder / "config.json",
        folder / "model.safetensors",
    ):
        path.touch()
    (models / "empty").mkdir()
    return Shelf(Paths.find())


def test_each_model_once(shelf: Shelf) -> None:
    names = [path.name for path in shelf.models()]
    assert names[:3] == ["Big-00001-of-00002.gguf", "One.Q4_K_M.gguf", "Tiny-Qwen2.5"]
    assert len(names) == 4, "the starter comes last"


def test_paths_and_names_are_found(shelf: Shelf, octavo_home: Path) -> None:
    folder = octavo_home / "models" / "Tiny-Qwen2.5"
    assert shelf.find(str(folder)) == folder
    assert shelf.find("tiny-qwen2.5") == folder
    assert shelf.find("one.q4_k_m").name == "One.Q4_K_M.gguf"
    with pytest.raises(NoModel, match="nothing"):
        shelf.find("nothing")
