"""One page as a file: a header that says what it is, the tokens, the keys and values, and a checksum over all of it."""

from __future__ import annotations

import hashlib
import io
import os
import struct
from array import array
from dataclasses import dataclass
from pathlib import Path

from octavo_engine.page_store.private_file import replace_file

SUFFIX = ".page"
# Magic with the version of the format, checksum of what follows it, key, number of tokens, bytes of keys and values.
_HEADER = struct.Struct("<8s32s32sIQ")
_MAGIC = b"octpage1"
_CHECKED_FROM = 8 + 32


class DamagedPage(Exception):
    """The file is not the page that its name promises."""


@dataclass(frozen=True, slots=True)
class PageName:
    """What a page is looked up by: its key of 32 bytes, and the tokens that it must hold."""

    key: bytes
    tokens: tuple[int, ...]


def file_size(tokens: int, payload_bytes: int) -> int:
    """Bytes of the file of a page with `tokens` tokens."""
    return _HEADER.size + 8 * tokens + payload_bytes


def file_name(key: bytes) -> str:
    """The name of a page's file."""
    return key.hex() + SUFFIX


def write_page(path: Path, name: PageName, payload: bytes) -> int:
    """Write a page so that `path` holds all of it or does not exist; readable by its owner only.

    Returns:
        Bytes of the file.

    Raises:
        OSError: no space, no such folder, read-only.
    """
    rest = _HEADER.pack(_MAGIC, bytes(32), name.key, len(name.tokens), len(payload))[_CHECKED_FROM:]
    tokens = array("q", name.tokens).tobytes()
    checksum = _checksum(rest, tokens, payload)
    replace_file(path, (_MAGIC, checksum, rest, tokens, payload))
    return file_size(len(name.tokens), len(payload))


def read_page(path: Path, name: PageName, payload_bytes: int) -> bytearray:
    """The keys and values of a page.

    Raises:
        FileNotFoundError: there is no such file.
        DamagedPage: it is cut short, too long, another page, or changed.
        OSError: it cannot be read.
    """
    tokens = array("q", name.tokens).tobytes()
    size = file_size(len(name.tokens), payload_bytes)
    with path.open("rb", buffering=0) as file:
        if os.fstat(file.fileno()).st_size != size:
            raise DamagedPage(f"{path.name} does not have {size} bytes")
        head = file.read(_HEADER.size + len(tokens))
        payload = bytearray(payload_bytes)
        if len(head) != _HEADER.size + len(tokens) or _read_into(file, payload) != payload_bytes:
            raise DamagedPage(f"{path.name} ends early")
    magic, checksum, key, count, length = _HEADER.unpack_from(head)
    if (magic, key, count, length) != (_MAGIC, name.key, len(name.tokens), payload_bytes):
        raise DamagedPage(f"{path.name} is another page")
    if head[_HEADER.size :] != tokens:
        raise DamagedPage(f"{path.name} holds other tokens")
    if checksum != _checksum(head[_CHECKED_FROM : _HEADER.size], tokens, payload):
        raise DamagedPage(f"{path.name} has changed")
    return payload


def _checksum(rest: bytes, tokens: bytes, payload: bytes | bytearray) -> bytes:
    digest = hashlib.sha256(rest)
    digest.update(tokens)
    digest.update(payload)
    return digest.digest()


def _read_into(file: io.FileIO, buffer: bytearray) -> int:
    view, done = memoryview(buffer), 0
    while done < len(buffer):
        count = file.readinto(view[done:])
        if not count:
            break
        done += count
    return done
