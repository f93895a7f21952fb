"""Opens the disk tier of an engine and finds out what decides the bytes of its pages."""

from __future__ import annotations

import hashlib
import logging
import shutil
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

from octavo_engine import models
from octavo_engine.config import EngineConfig
from octavo_engine.page_store.fingerprint import ModelDigests
from octavo_engine.page_store.page_key import root_key
from octavo_engine.page_store.page_store import PageStore

_log = logging.getLogger(__name__)
# Where nothing is configured: so much, and no more than a tenth of what is free on the disk.
_LIMIT = 4 << 30
_SHARE = 10


def open_page_store(
    config: EngineConfig, files: Sequence[Path], *, page_bytes: int, arithmetic: Mapping[str, str]
) -> PageStore | None:
    """The disk tier that `config` asks for; None where it asks for none.

    The digest of a model that is new is computed on the store's thread; until then the store keeps and finds nothing.

    Args:
        config: the engine's settings.
        files: those that decide what the model computes.
        page_bytes: bytes of one page's keys and values.
        arithmetic: what else decides a page's bytes: kernels, layouts, number types.
    """
    if config.page_store is None:
        return None
    folder = Path(config.page_store)
    store = PageStore(folder, payload_bytes=page_bytes, limit=config.page_store_bytes or _default_limit(folder))
    digests = ModelDigests(folder)
    facts = {
        **arithmetic,
        "octavo": version("octavo"),
        "decoder": _source_digest(Path(next(iter(models.__path__)))),
        "adapter": "",
        "weights": config.weights,
        "page_size": str(config.page_size),
        "batch_invariant": str(config.batch_invariant),
        "max_context": str(config.max_context),
    }

    def identify(digest: str) -> None:
        store.root = root_key({**facts, "model": digest})

    def compute() -> None:
        try:
            found = [digests.known(file) or digests.compute(file, lambda: store.is_closing) for file in files]
            if all(found):
                identify(" ".join(map(str, found)))
        except OSError as fault:
            # Without it nothing is kept and nothing found.
            _log.warning("the digest of %s cannot be kept: %s", files[0].name, fault)

    known = [digests.known(file) for file in files]
    if all(known):
        identify(" ".join(map(str, known)))
    else:
        store.run(compute)
    return store


def _default_limit(folder: Path) -> int:
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    return min(_LIMIT, shutil.disk_usage(there).free // _SHARE)


def _source_digest(package: Path) -> str:
    digest = hashlib.sha256()
    for source in sorted(package.rglob("*.py")):
        digest.update(source.read_bytes())
    return digest.hexdigest()
