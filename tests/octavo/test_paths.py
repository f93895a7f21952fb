"""The data folder holds every path, and the libraries' caches with it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from octavo import paths
from octavo.paths import Paths, default_system_prompt, resource


def test_every_path_lies_below_octavo_home(octavo_home: Path) -> None:
    paths = Paths.find()
    assert paths.home == octavo_home
    places = [getattr(paths, name) for name, value in vars(Paths).items() if isinstance(value, property)]
    assert len(places) >= 8
    assert all(octavo_home in place.parents for place in places)
    assert not octavo_home.exists()


def test_argument_comes_before_the_variable(tmp_path: Path) -> None:
    assert Paths.find(tmp_path / "other").home == tmp_path / "other"


def test_without_a_choice_the_platform_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OCTAVO_HOME")
    assert Paths.find().home.name == "octavo"
    assert Paths.find().home.is_absolute()


def test_libraries_keep_their_files_in_the_cache(octavo_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("HF_HOME", "NUMBA_CACHE_DIR", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")
    for name in names:
        monkeypatch.setenv(name, "/elsewhere")
    Paths.find().export()
    assert {Path(os.environ[name]).parent for name in names} == {octavo_home / "cache"}


def test_starter_model_lies_beside_the_program(starter_model: Path) -> None:
    assert paths.starter_model() == starter_model


def test_resources_are_found() -> None:
    assert default_system_prompt()
    with pytest.raises(FileNotFoundError, match="install Octavo again"):
        resource("no/such/file")


def test_no_starter_model_without_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    assert paths.starter_model() is None
