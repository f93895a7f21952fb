"""How many bytes a chosen wheel has, before it is fetched."""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterable
from pathlib import Path
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import Request, url2pathname, urlopen

from octavo_dev.pip import WheelFile


def total_bytes(wheels: Iterable[WheelFile], environment: Path) -> int | None:
    """Bytes of all files together; None when a server does not tell."""
    context = _tls_context(environment)
    total = 0
    for wheel in wheels:
        size = _size(wheel.url, context)
        if size is None:
            return None
        total += size
    return total


def _size(url: str, context: ssl.SSLContext) -> int | None:
    parts = urlsplit(url)
    if parts.scheme == "file":
        return Path(url2pathname(parts.path)).stat().st_size
    try:
        with urlopen(Request(url, method="HEAD"), timeout=20, context=context) as answer:
            length = answer.headers.get("Content-Length")
    except (URLError, TimeoutError):
        # The size is news, not a need: the caller says that it is unknown.
        return None
    return int(length) if length else None


def _tls_context(environment: Path) -> ssl.SSLContext:
    """A bare machine has no certificates of its own; pip carries some, and PIP_CERT names others."""
    context = ssl.create_default_context()
    named = os.environ.get("PIP_CERT")
    bundles = [Path(named)] if named else list(environment.glob("**/pip/_vendor/certifi/cacert.pem"))
    for bundle in bundles:
        context.load_verify_locations(cafile=bundle)
    return context
