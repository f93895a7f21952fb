"""Documentation is tested: its links lead somewhere, and no file names a place on somebody's machine."""

from __future__ import annotations

import re
from pathlib import Path

_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_PATH_IN_TEXT = re.compile(r"`((?:app|engine|kernels|resources|tests|packaging|docs)/[\w./*-]+)`")
# First folders of paths that exist on one machine only; those of the system (/usr, /tmp, /proc, /dev) are everybody's.
_PRIVATE_PATH = re.compile(r"(?<![\w.:/~$}>)*-])/(?:home|root|opt|srv|mnt|media|work|Users|builds?)/[\w.]+")
_TEXT = {".py", ".md", ".toml", ".json", ".qss", ".svg", ".sh", ".lock", ".in", ".yml", ".yaml", ".cfg", ".txt", ""}


def _documents(tracked_files: tuple[Path, ...]) -> list[Path]:
    return [path for path in tracked_files if path.suffix == ".md"]


def test_links_lead_somewhere(tracked_files: tuple[Path, ...]) -> None:
    broken = []
    for document in _documents(tracked_files):
        for target in _LINK.findall(document.read_text(encoding="utf-8")):
            if "://" in target or target.startswith(("#", "mailto:")):
                continue
            if not (document.parent / target.split("#", 1)[0]).exists():
                broken.append(f"{document.name}: {target}")
    assert broken == []


def test_paths_in_documents_exist(root: Path, tracked_files: tuple[Path, ...]) -> None:
    missing = []
    for document in _documents(tracked_files):
        targets = _PATH_IN_TEXT.findall(document.read_text(encoding="utf-8"))
        missing += [f"{document.name}: {target}" for target in targets if not any(root.glob(target.rstrip("/")))]
    assert missing == []


def test_no_file_names_a_place_on_one_machine(root: Path, tracked_files: tuple[Path, ...]) -> None:
    found = []
    for path in tracked_files:
        if path.suffix in _TEXT and path != Path(__file__):
            found += [
                f"{path.relative_to(root)}: {match[0]}" for match in _PRIVATE_PATH.finditer(path.read_text("utf-8"))
            ]
    assert found == []


def test_the_pattern_for_private_paths_finds_them() -> None:
    assert _PRIVATE_PATH.search("see /home/ada/octavo")
    assert not _PRIVATE_PATH.search("https://example.org/home/page")


def test_readme_names_the_two_commands(root: Path) -> None:
    text = (root / "README.md").read_text(encoding="utf-8")
    for command in ("python3 packaging/dev.py run", "python3 packaging/dev.py test"):
        assert command in text
    assert "python3 packaging/dev.py test" in (root / ".ci" / "run").read_text(encoding="utf-8")
