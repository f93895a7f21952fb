"""Models in several GGUF files: any part opens the whole, and a part that is wrong says so."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import gguf
import pytest
import torch

from octavo_engine import ModelLoadError, inspect
from ragged import batch, stale_pages
from tiny_decoder import decoder_of
from tiny_families import tiny_model, write_gguf

TOKENS = list(range(1, 30))


def logits(path: Path) -> torch.Tensor:
    decoder = decoder_of(path, weights="float32")
    return decoder.forward(batch([(TOKENS, 0, [1, 0])]), stale_pages(decoder))


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("parts")
    model = tiny_model("llama", num_hidden_layers=2)
    write_gguf(model, "llama", folder / "tiny.gguf", kind=gguf.GGMLQuantizationType.F16)
    write_gguf(model, "llama", folder / "tiny.gguf", kind=gguf.GGMLQuantizationType.F16, tensors_per_file=8)
    return folder


def part(folder: Path, number: int) -> Path:
    return folder / f"tiny-{number:05}-of-00003.gguf"


def test_any_part_opens_the_whole_model(parts: Path) -> None:
    whole = inspect(parts / "tiny.gguf")
    expected = logits(parts / "tiny.gguf")
    for number in (1, 2, 3):
        info = inspect(part(parts, number))
        assert (info.supported, info.parameters, info.layers) == (True, whole.parameters, 2), info.reason
        assert info.file_bytes == sum(part(parts, each).stat().st_size for each in (1, 2, 3))
        assert torch.equal(logits(part(parts, number)), expected)


def missing(folder: Path) -> None:
    part(folder, 2).unlink()


def renamed(folder: Path) -> None:
    part(folder, 1).rename(folder / "model.gguf")


def swapped(folder: Path) -> None:
    shutil.copy(part(folder, 3), part(folder, 2))


def of_itself(folder: Path) -> None:
    part(folder, 2).unlink()
    part(folder, 2).symlink_to(part(folder, 2).name)


def of_each_other(folder: Path) -> None:
    for mine, other in ((2, 3), (3, 2)):
        part(folder, mine).unlink()
        part(folder, mine).symlink_to(part(folder, other).name)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (missing, "2 of them|1 of them"),
        (renamed, "one of 3 parts"),
        (swapped, "is no part 2 of 3"),
        (of_itself, "not in its folder"),
        (of_each_other, "not in its folder"),
    ],
)
def test_parts_that_do_not_fit_are_named(
    parts: Path, tmp_path: Path, damage: Callable[[Path], None], words: str
) -> None:
    folder = tmp_path / "parts"
    shutil.copytree(parts, folder)
    damage(folder)
    with pytest.raises(ModelLoadError, match=words):
        inspect(next(path for path in (part(folder, 1), folder / "model.gguf") if path.exists()))
