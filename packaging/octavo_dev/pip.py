"""Pip: runs the environment's pip, shows its downloads, and turns its failures into one sentence.

Knows no index: where packages come from is the machine's own pip configuration.
"""

from __future__ import annotations

import json
import platform
import re
import subprocess
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from octavo_dev.progress import ByteLine
from octavo_dev.setup_error import SetupError, disk_error

_RAW_PROGRESS = re.compile(r"^Progress (\d+) of (\d+)")
_DOWNLOADING = re.compile(r"^\s*Downloading (?:\S*/)?([^\s/-]+)-([^\s/-]+)")
_INSTALLING = re.compile(r"^Installing collected packages: (.+)")
_OFFLINE = (
    "ConnectTimeoutError", "Connection refused", "Failed to establish a new connection", "Name or service not known",
    "Network is unreachable", "NewConnectionError", "Temporary failure in name resolution", "getaddrinfo",
)  # fmt: skip
_BROKEN_OFF = (
    "Connection broken", "ConnectionResetError", "IncompleteRead", "ReadTimeoutError", "incomplete-download",
    "not enough bytes were received",
)  # fmt: skip
_SAME_COMMAND = "and run the same command again; it goes on where it stopped."


@dataclass(frozen=True, slots=True)
class WheelFile:
    """One file that pip chose: `url` is https:// or file://."""

    name: str
    version: str
    url: str


@dataclass(frozen=True, slots=True)
class Pip:
    """The pip of one interpreter. `log` collects everything that it says."""

    python: Path
    log: Path

    def install(self, *arguments: str, raw_progress: bool = True) -> None:
        """Install; `raw_progress` needs pip 24.1 or newer. Raises SetupError."""
        bar = "raw" if raw_progress else "off"
        self._stream(["install", "--progress-bar", bar, *arguments])

    def download(self, requirement: str, folder: Path) -> None:
        """Fetch one package without its dependencies into `folder`. Raises SetupError."""
        self._stream(["download", "--progress-bar", "raw", "--no-deps", "--dest", str(folder), requirement])

    def resolve(self, *arguments: str, report: Path) -> tuple[WheelFile, ...]:
        """What an install would fetch, found without fetching it (by range requests). Raises SetupError."""
        self._stream(
            [
                "install",
                "--dry-run",
                "--use-feature=fast-deps",
                "--progress-bar",
                "off",
                "--report",
                str(report),
                *arguments,
            ]
        )
        chosen = json.loads(report.read_text(encoding="utf-8"))["install"]
        return tuple(
            WheelFile(item["metadata"]["name"], item["metadata"]["version"], item["download_info"]["url"])
            for item in chosen
        )

    def _stream(self, arguments: Sequence[str]) -> None:
        command = [str(self.python), "-m", "pip", "--disable-pip-version-check", "--no-input", *arguments]
        tail: deque[str] = deque(maxlen=60)
        line: ByteLine | None = None
        try:
            self.log.parent.mkdir(parents=True, exist_ok=True)
            with (
                self.log.open("a", encoding="utf-8") as log,
                subprocess.Popen(
                    command,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    encoding="utf-8",
                    errors="replace",
                ) as process,
            ):
                assert process.stdout is not None
                log.write(f"$ {' '.join(command)}\n")
                for text in process.stdout:
                    if progress := _RAW_PROGRESS.match(text):
                        if line is not None:
                            line.show(int(progress[1]), int(progress[2]))
                        continue
                    log.write(text)
                    tail.append(text.rstrip())
                    if started := _DOWNLOADING.match(text):
                        if line is not None:
                            line.end()
                        line = ByteLine(f"{started[1]} {started[2]}")
                    elif installing := _INSTALLING.match(text):
                        print(f"      unpacking {_packages(installing[1])}", flush=True)
        except OSError as error:
            raise disk_error(error, self.log.parent) from error
        if line is not None:
            line.end()
        if process.returncode != 0:
            raise _explain(tail, process.returncode, self.log)


def _packages(names: str) -> str:
    listed = names.split(", ")
    return listed[0] if len(listed) == 1 else f"{len(listed)} packages"


def _explain(tail: Sequence[str], returncode: int, log: Path) -> SetupError:
    """The sentence for a failed pip, from what it said last."""
    text = "\n".join(tail)
    if "No space left on device" in text or "Errno 28" in text:
        return SetupError(
            "The disk is full: pip could not write what it had fetched.", f"Free some space {_SAME_COMMAND}"
        )
    if "DO NOT MATCH THE HASHES" in text:
        return SetupError(
            "A fetched package differs from the one that the lock names (its SHA-256 is another).",
            f"If a mirror or proxy stands between, try without it {_SAME_COMMAND} Pip's words are in {log}.",
        )
    if any(word in text for word in _OFFLINE):
        return SetupError(
            "The package index cannot be reached.",
            f"Check the network connection (and pip's proxy and index settings) {_SAME_COMMAND}",
        )
    if any(word in text for word in _BROKEN_OFF):
        return SetupError("A download broke off.", f"Check the network connection {_SAME_COMMAND}")
    if "No matching distribution found" in text:
        missing = next(part for part in reversed(tail) if "No matching distribution found" in part)
        wanted = missing.rsplit(" for ", 1)[-1]
        if "(from versions: none)" in text:
            return SetupError(
                f"The package index is out of reach, or has nothing of {wanted}.",
                f"Check the network connection (and pip's proxy and index settings) {_SAME_COMMAND}",
            )
        return SetupError(
            f"The package index has no release {wanted} for this system and Python {platform.python_version()}.",
            f"Check pip's index settings and take a Python from 3.11 to 3.13 {_SAME_COMMAND}",
        )
    spoken = [part for part in tail if part.strip()] or ["no message"]
    last = next((part for part in reversed(spoken) if part.startswith("ERROR: ")), spoken[-1])
    return SetupError(
        f"pip ended with code {returncode}: {last.removeprefix('ERROR: ').strip()}.",
        f"Its words are in {log}; mend that {_SAME_COMMAND}",
    )
