"""Compiled kernels are used from where they lie if they fit, and from nowhere else."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from octavo_kernels.cpu import cache


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "kernels"
    cache.clear(folder)
    (folder / "one.nbi").write_bytes(b"index")
    (folder / "one.nbc").write_bytes(b"code")
    cache.seal(folder)
    return folder


def test_a_sealed_folder_fits_wherever_it_is(folder: Path) -> None:
    assert cache.obstacle(folder) is None
    moved = folder.rename(folder.with_name("elsewhere"))
    assert cache.obstacle(moved) is None


def test_a_folder_that_does_not_fit_is_not_used(folder: Path) -> None:
    assert cache.obstacle(folder.with_name("nowhere")) == "not compiled"
    (folder / "one.nbc").write_bytes(b"c0de")
    assert cache.obstacle(folder) == "damaged"
    (folder / "one.nbc").write_bytes(b"code")
    seal = json.loads((folder / "seal.json").read_text())
    (folder / "seal.json").write_text(json.dumps(seal | {"stamp": "0"}))
    assert "another source" in str(cache.obstacle(folder))
    (folder / "seal.json").write_text("[")
    assert "unreadable" in str(cache.obstacle(folder))


def test_importing_the_package_loads_neither_torch_nor_numba() -> None:
    code = "import sys, octavo_kernels; print([name for name in ('torch', 'numba', 'triton') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_kernels_compiled_once_are_read_by_the_next_process(tmp_path: Path) -> None:
    code = (
        "import sys; sys.prefix = sys.argv[1]\n"
        "from octavo_kernels import warm; warm()\n"
        "from octavo_kernels.cpu.native_kernel import KERNELS\n"
        "print([kernel.compilation.cached for kernel in KERNELS])"
    )
    environment = {"NUMBA_CACHE_DIR": str(tmp_path / "numba"), "PATH": ""}
    paths = ":".join(path for path in sys.path if path)
    seen = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path)],
            capture_output=True,
            text=True,
            check=True,
            env=environment | {"PYTHONPATH": paths},
        )
        seen.append(done.stdout.strip())
    assert "True" not in seen[0]
    assert "False" in seen[0]
    assert seen[1] == seen[0].replace("False", "True")
