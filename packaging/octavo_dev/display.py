"""Whether a window can be shown here."""

from __future__ import annotations

import os
import sys


def has_display() -> bool:
    """Linux needs an X11 or Wayland display in the environment, or a QT_QPA_PLATFORM; other systems always have one."""
    if not sys.platform.startswith("linux"):
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"))
