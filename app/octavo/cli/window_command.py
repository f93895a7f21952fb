"""`octavo [FILE...]`: opens the window, or raises the one that is open already. Loads Qt, and only here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from octavo.cli.complaint import CommandError, complain
from octavo.cli.exit_code import ExitCode
from octavo.doorbell import ring
from octavo.engine_client import Engine, ScriptError, scripted_engine
from octavo.paths import Paths
from octavo.store import StoreInUse


def run_window(files: Sequence[str], engine: str | None) -> ExitCode:
    """Run the application until its last window closes."""
    try:
        paths = Paths.find()
        if ring(paths.doorbell, files):
            return ExitCode.OK
        missing = [name for name in files if not Path(name).is_file()]
        if missing:
            raise CommandError("FileNotFoundError", f"There is no file {missing[0]}.", ExitCode.NO_MODEL)
        return _show(paths, files, _engine(engine))
    except CommandError as error:
        return complain(error, as_json=False)


def _show(paths: Paths, files: Sequence[str], engine: Engine | None) -> ExitCode:
    paths.export()
    from octavo.application import Application

    try:
        application = Application(paths.home, engine, files)
    except StoreInUse as error:
        raise CommandError("StoreInUse", error.message, ExitCode.FAILED) from error
    return ExitCode(application.run())


def _engine(name: str | None) -> Engine | None:
    """The engine that `--engine` names. Raises CommandError."""
    if name is None:
        return None
    kind, _, script = name.partition(":")
    if kind != "fake":
        raise CommandError("UsageError", f"There is no engine {name}; fake[:SCRIPT.json] is one.", ExitCode.USAGE)
    try:
        return scripted_engine(Path(script) if script else None)
    except ScriptError as error:
        raise CommandError("ScriptError", str(error), ExitCode.USAGE) from error
