"""How a command says that it failed: a sentence on standard error or an object on standard output, no traceback."""

from __future__ import annotations

import json
import sys
from typing import Any

from octavo.cli.exit_code import ExitCode
from octavo.engine_client import EngineError, InvalidRequest
from octavo.library.shelf import NoModel


class CommandError(Exception):
    """A command cannot go on: what it is called, a sentence for people, and how the command ends."""

    def __init__(self, kind: str, message: str, code: ExitCode) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.code = code


Complaint = CommandError | EngineError | NoModel


def error_object(error: Complaint) -> dict[str, Any]:
    """The error for programs; `needed` and `available` are in the unit that the message names."""
    return {
        "type": _kind(error),
        "message": str(error),
        "needed": error.needed if isinstance(error, EngineError) else None,
        "available": error.available if isinstance(error, EngineError) else None,
    }


def complain(error: Complaint, *, as_json: bool) -> ExitCode:
    """Print the error where the caller of this command looks for it; the exit code that it means."""
    if as_json:
        print(json.dumps({"error": error_object(error)}, ensure_ascii=False), flush=True)
    else:
        print(f"octavo: {error}", file=sys.stderr, flush=True)
    return exit_code_of(error)


def exit_code_of(error: Complaint) -> ExitCode:
    """The exit code that an error means."""
    if isinstance(error, CommandError):
        return error.code
    if isinstance(error, NoModel):
        return ExitCode.NO_MODEL
    return ExitCode.USAGE if isinstance(error, InvalidRequest) else ExitCode.FAILED


def _kind(error: Complaint) -> str:
    if isinstance(error, CommandError):
        return error.kind
    # To a program a model that is not there is one that cannot be loaded; the exit code tells the two apart.
    return "ModelLoadError" if isinstance(error, NoModel) else type(error).__name__
