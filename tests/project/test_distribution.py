"""What gets installed, and what must never be claimed as a top-level name."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

OURS = ("octavo", "octavo_engine", "octavo_kernels")


def test_wheel_holds_the_three_packages_and_nothing_else(
    root: Path, tracked_files: tuple[Path, ...], tmp_path: Path
) -> None:
    copy = tmp_path / "sources"
    for path in tracked_files:
        target = copy / path.relative_to(root)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", str(tmp_path)]
    command = [sys.executable, "-m", "pip", "wheel", *options, str(copy)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    (wheel,) = tmp_path.glob("octavo-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    tops = {name.split("/", 1)[0] for name in names}
    metadata = {top for top in tops if top.endswith(".dist-info")}
    assert tops - metadata == set(OURS)
    assert len(metadata) == 1
    for package in OURS:
        sources = [
            path for path in tracked_files if path.suffix == ".py" and package in path.relative_to(root).parts[1:2]
        ]
        packed = {name for name in names if name.startswith(f"{package}/") and name.endswith(".py")}
        assert len(packed) == len([path for path in sources if path.relative_to(root).parts[0] != "tests"])


def test_installed_project_is_this_one(root: Path) -> None:
    for package in OURS:
        spec = importlib.util.find_spec(package)
        assert spec is not None
        assert spec.origin is not None
        assert Path(spec.origin).is_relative_to(root)


@pytest.mark.parametrize("name", ["app", "engine", "kernels", "packaging", "resources", "tests"])
def test_folder_is_no_package(root: Path, name: str) -> None:
    assert not (root / name / "__init__.py").exists()


def test_the_packaging_library_is_the_one_from_the_index(root: Path) -> None:
    """Even when Python starts in the repository's root, where a folder has the library's name."""
    question = "import packaging.version; print(packaging.__file__)"
    answer = subprocess.run([sys.executable, "-c", question], cwd=root, capture_output=True, text=True, check=True)
    assert not Path(answer.stdout.strip()).is_relative_to(root / "packaging")


def test_no_module_named_kernels_app_or_engine_is_installed(tmp_path: Path) -> None:
    """Transformers looks for `kernels`: whatever it finds must not be ours."""
    question = "import importlib.util as u; print([n for n in ('app', 'engine', 'kernels') if u.find_spec(n)])"
    answer = subprocess.run([sys.executable, "-c", question], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
    providers = importlib.metadata.packages_distributions()
    assert [name for name in ("app", "engine", "kernels") if "octavo" in providers.get(name, [])] == []
