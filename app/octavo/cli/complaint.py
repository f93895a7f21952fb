"""How a command says that it failed: a sentence on standard error, or an object on standard output. Never a traceback."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass

from octavo.cli.exit_code import ExitCode
from octavo.engine_client import EngineError, InvalidRequest
from octavo.library.shelf import NoModel


@dataclass(frozen=True, slots=True)
class Complaint:
    """What went wrong. `needed` and `available` are in the unit that the message names."""

    type: str
    message: str
    code: ExitCode
    needed: int | None = None
    available: int | None = None

    @classmethod
    def of(cls, error: EngineError | NoModel | OSError) -> Complaint:
        """The complaint about an error of the engine or of the world."""
        kind = type(error).__name__
        match error:
            case NoModel():
                return cls(kind, str(error), ExitCode.NO_MODEL)
            case InvalidRequest():
                return cls(kind, error.message, ExitCode.USAGE, error.needed, error.available)
            case EngineError():
                return cls(kind, error.message, ExitCode.FAILED, error.needed, error.available)
        return cls(kind, f"{error.strerror or error}: {error.filename}", ExitCode.FAILED)

    def tell(self, *, as_json: bool) -> ExitCode:
        """Print it where this command's caller looks; the exit code."""
        if as_json:
            content = {
                "type": self.type,
                "message": self.message,
                "needed": self.needed,
                "available": self.available,
            }
            print(json.dumps({"error": content}, ensure_ascii=False), flush=True)
        else:
            print(f"octavo: {self.message}", file=sys.stderr, flush=True)
        return self.code
