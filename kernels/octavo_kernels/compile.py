"""`python -m octavo_kernels.compile`: fills the folder beside the program with kernels for this processor, once."""

from __future__ import annotations

import sys

from octavo_kernels.cpu import cache
from octavo_kernels.warm import warm


def main() -> None:
    """Compile what is missing, telling how far it is."""
    if cache.obstacle(cache.installed_folder()) is None:
        sys.stdout.write("The kernels are compiled already.\n")
        return
    cache.fill_installed()
    warm(lambda ready, total: sys.stdout.write(f"kernel {ready} of {total}\n") and sys.stdout.flush())


if __name__ == "__main__":
    main()
