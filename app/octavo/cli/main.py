"""Decides what a command line asks for and starts it. Loads neither Qt nor torch; the commands do."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from octavo.cli.arguments import COMMANDS, command_parser, window_parser
from octavo.cli.exit_code import ExitCode


def main(argv: Sequence[str] | None = None) -> int:
    """Run `octavo` with these arguments (by default the process's); the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        if arguments and arguments[0] in COMMANDS:
            return _command(arguments[0], arguments[1:])
        # Before Qt is loaded: a wrong argument and --help are answered at once.
        window_parser().parse_args(arguments)
        from octavo.cli.window_command import run_window

        return run_window(arguments)
    except KeyboardInterrupt:
        # CPython notes an interrupt that has passed through an exec, such as a dataclass being made, and would end by
        # the signal in spite of the code below. The next exec takes the note away.
        exec("")
        print(file=sys.stderr)
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # Whoever read the output has gone; Python would complain once more when it flushes at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.FAILED


def _command(name: str, arguments: Sequence[str]) -> int:
    options = command_parser(name).parse_args(arguments)
    if name == "chat":
        from octavo.cli.chat_command import ChatOptions, run_chat

        return run_chat(ChatOptions(**vars(options)))
    if name == "bench":
        from octavo.cli.bench_command import BenchOptions, run_bench_command

        return run_bench_command(BenchOptions(**vars(options)))
    from octavo.cli.doctor_command import run_doctor

    return run_doctor(options.model, as_json=options.json)
