"""`octavo [FILE...]`: opens the window, or has the one that is open already come to the front."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from octavo.cli.exit_code import ExitCode
from octavo.paths import Paths
from octavo.store.errors import StoreError, StoreInUse
from octavo.summons import summon


def run_window(argv: Sequence[str]) -> int:
    """Run the window until it is closed; the exit code."""
    from octavo.application import Application

    try:
        application = Application(argv=argv)
    except StoreInUse as error:
        if summon(Paths.find().summons):
            return ExitCode.OK
        return _complain(error.message)
    except StoreError as error:
        return _complain(error.message)
    application.open_window()
    return application.exec()


def _complain(message: str) -> int:
    print(f"octavo: {message}", file=sys.stderr, flush=True)
    return ExitCode.FAILED
