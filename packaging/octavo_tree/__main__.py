"""`python -m octavo_tree ROOT TARGET`: assemble the private tree of the checkout ROOT as the folder TARGET."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from octavo_tree.assembly import assemble


def _tell(step: str) -> None:
    print(step, flush=True)


def main(root: Path, target: Path) -> int:
    """Assemble; the exit code. The last line on standard error says what failed."""
    try:
        assemble(root, target, _tell)
    except (OSError, subprocess.CalledProcessError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
