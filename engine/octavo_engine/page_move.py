"""A page whose contents go elsewhere before a step computes. Plain integers."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field


class MoveKind(enum.Enum):
    """Between which pools a page moves."""

    COPY = "copy within the device"
    OUT = "device to host"
    IN = "host to device"
    LOAD = "disk to device"


@dataclass(frozen=True, slots=True)
class PageMove:
    """Page `source` is to be copied to page `target`. Moves are made in order: each sees what those before it did.

    A page that comes from the disk has no source but `data`: its bytes.
    """

    kind: MoveKind
    source: int
    target: int
    data: bytearray | None = field(default=None, repr=False)
