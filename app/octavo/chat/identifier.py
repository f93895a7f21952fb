"""Identifiers of chats and messages: unique, ordered by the time they were made, final before anything is painted.

The layout is that of UUID version 7 (RFC 9562, section 5.7): 48 bits of Unix milliseconds, then 74 bits of which the
first 12 count within the millisecond, so that identifiers made in one process sort in the order they were made.
"""

from __future__ import annotations

import secrets
import threading
import time
import uuid

_lock = threading.Lock()
_last = 0


def new_id() -> str:
    """A fresh identifier of 36 characters, larger than every one made before in this process; any thread."""
    global _last  # noqa: PLW0603 - the order is a promise of the process, not of an object
    with _lock:
        # 12 bits within the millisecond: a clock that stands or goes back only counts on.
        _last = max(_last + 1, (time.time_ns() // 1_000_000) << 12)
        milliseconds, count = _last >> 12, _last & 0xFFF
    value = milliseconds << 80 | 0x7 << 76 | count << 64 | 0b10 << 62 | secrets.randbits(62)
    return str(uuid.UUID(int=value))
