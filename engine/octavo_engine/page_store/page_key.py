"""Keys of pages: what decides a page's bytes, and nothing else, decides its key."""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Mapping, Sequence


def root_key(facts: Mapping[str, str]) -> bytes:
    """The key before the first page: a digest of all facts about model, arithmetic and layout. 32 bytes."""
    return hashlib.sha256(json.dumps(dict(facts), sort_keys=True).encode()).digest()


def page_keys(root: bytes, tokens: Sequence[int], page_size: int) -> list[bytes]:
    """A key of 32 bytes for each whole page of `tokens`; each depends on all tokens before it."""
    keys: list[bytes] = []
    key = root
    for start in range(0, len(tokens) - page_size + 1, page_size):
        key = hashlib.sha256(key + array("q", tokens[start : start + page_size]).tobytes()).digest()
        keys.append(key)
    return keys
