"""How the private tree is started: a shell script that finds its folder, and the lines of Python that it runs."""

from __future__ import annotations

from pathlib import Path

# -I: neither the user's packages nor PYTHON* variables reach in. -B: nothing is written beside the sources.
_SHELL = """\
#!/bin/sh
# Octavo, started from wherever this folder lies.
here=$(CDPATH= cd -- "$(dirname -- "$(readlink -f -- "$0")")" && pwd)
LD_LIBRARY_PATH="$here/lib${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"
export LD_LIBRARY_PATH
exec "$here/bin/{program}" -I -B "$here/start.py" "$@"
"""

_START = """\
import runpy
import site
import sys
from pathlib import Path

here = Path(__file__).resolve().parent
site.addsitedir(str(here / "packages"))
if sys.argv[1:2] == ["-m"]:
    # For the maker of this folder: run a module of it.
    del sys.argv[0:2]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
else:
    from octavo.cli import main

    sys.argv[0] = "octavo"
    sys.exit(main())
"""


def write_launcher(tree: Path, program: str) -> Path:
    """Write `octavo` and `start.py` into `tree`; the path of the first."""
    launcher = tree / "octavo"
    launcher.write_text(_SHELL.format(program=program), encoding="utf-8")
    launcher.chmod(0o755)
    (tree / "start.py").write_text(_START, encoding="utf-8")
    return launcher
