"""Reads numbers and strings one after another from a file that nobody vouches for. Knows no file format.

A path is mapped into memory; a binary file is read in pieces, only as far as someone asks.
"""

from __future__ import annotations

import io
import mmap
import os
import struct
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from octavo_engine.errors import ModelLoadError

PIECE = 1 << 20
_U32 = struct.Struct("<I")
_U64 = struct.Struct("<Q")


class ByteCursor:
    """A position in a file that moves forward. Use as a context manager.

    Attributes:
        size: length of the file in bytes.
        position: offset of the next byte.
    """

    def __init__(self, source: str | os.PathLike[str] | BinaryIO) -> None:
        """Open a path, or take a seekable binary file, which stays open.

        Raises:
            ModelLoadError: there is no such file, or it cannot be read.
        """
        self.position = 0
        self._file: BinaryIO | None = None
        self._data: mmap.mmap | bytearray
        if isinstance(source, str | os.PathLike):
            self._data = _mapped(Path(source))
            self.size = self._loaded = len(self._data)
        else:
            self._file = source
            self._data = bytearray()
            self._loaded = 0
            self.size = source.seek(0, io.SEEK_END)
            source.seek(0)

    def __enter__(self) -> ByteCursor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(self._data, mmap.mmap):
            self._data.close()

    @property
    def remaining(self) -> int:
        """Bytes from here to the end of the file."""
        return self.size - self.position

    def take(self, count: int) -> bytes:
        """The next `count` bytes.

        Raises:
            ModelLoadError: the file ends before.
        """
        end = self.position + count
        if end > self._loaded:
            self._load(end)
        piece = bytes(self._data[self.position : end])
        self.position = end
        return piece

    def u32(self) -> int:
        """The next unsigned 32-bit number."""
        number: int = _U32.unpack(self.take(4))[0]
        return number

    def u64(self) -> int:
        """The next unsigned 64-bit number."""
        number: int = _U64.unpack(self.take(8))[0]
        return number

    def string(self, limit: int) -> str:
        """The next string: a 64-bit length and that many bytes of UTF-8; bytes that are not become U+FFFD.

        Raises:
            ModelLoadError: the file ends before, or the length is over `limit` bytes.
        """
        length = self.u64()
        if length > limit:
            raise ModelLoadError(
                f"The model file is damaged: a text of {length:,} bytes stands in its header. Download it again.",
                needed=length,
                available=limit,
            )
        return str(self.take(length), "utf-8", "replace")

    def strings(self, count: int) -> tuple[str, ...]:
        """The next `count` strings, without a Python call for each: vocabularies have hundreds of thousands."""
        data, loaded, position = self._data, self._loaded, self.position
        unpack = _U64.unpack_from
        texts: list[str] = []
        for _ in range(count):
            start = position + 8
            if start > loaded:
                loaded = self._load(start)
            position = start + unpack(data, position)[0]
            if position > loaded:
                loaded = self._load(position)
            texts.append(str(data[start:position], "utf-8", "replace"))
        self.position = position
        return tuple(texts)

    def _load(self, end: int) -> int:
        """Read until `end` bytes are in memory; returns how many are."""
        if end > self.size:
            raise ModelLoadError(
                f"The model file is cut short: its header needs {end:,} bytes and the file has {self.size:,}. "
                "Download it again.",
                needed=end,
                available=self.size,
            )
        assert self._file is not None, "a mapped file is loaded whole"
        assert isinstance(self._data, bytearray)
        while self._loaded < end:
            piece = self._file.read(min(max(PIECE, end - self._loaded), self.size - self._loaded))
            if not piece:
                self.size = self._loaded
                return self._load(end)
            self._data += piece
            self._loaded += len(piece)
        return self._loaded


def _mapped(path: Path) -> mmap.mmap | bytearray:
    """The file's content; an empty file cannot be mapped."""
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                return bytearray()
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except FileNotFoundError:
        raise ModelLoadError(f"There is no model file at {path}. Choose another file or download the model.") from None
    except IsADirectoryError:
        raise ModelLoadError(f"{path} is a folder. Choose the .gguf file in it.") from None
    except OSError as error:
        raise ModelLoadError(f"The model file {path} cannot be read: {error.strerror}.") from error
