#!/usr/bin/env python3
"""One command to set Octavo up, run it, test it, check it and package it. Run it with any Python from 3.11 on.

Every sub-command first does what is missing of the set-up: system libraries, environment, locked packages, starter
model, compiled kernels. With nothing missing that takes a fraction of a second.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

if sys.version_info < (3, 11):  # noqa: UP036 - this file is what an older Python would be started with
    sys.exit(
        f"Octavo needs Python 3.11 or newer; this is {sys.version.split()[0]}. Start it as: python3.11 {sys.argv[0]}"
    )

# Only the folder of this script is on the path before anything is installed.
from octavo_dev import commands
from octavo_dev.project_tree import ProjectTree
from octavo_dev.setup import set_up
from octavo_dev.setup_error import SetupError

_INTERRUPTED = 130


def main(argv: list[str]) -> int:
    """Run one sub-command; its exit code."""
    options, rest = parse(argv)
    tree = ProjectTree(Path(__file__).resolve().parent.parent)
    try:
        worked = set_up(tree)
        return _command(tree, options, rest, worked)
    except SetupError as error:
        print(f"\nError: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nInterrupted. Run the same command again; it goes on where it stopped.", file=sys.stderr)
        return _INTERRUPTED


def parse(argv: list[str]) -> tuple[argparse.Namespace, list[str]]:
    """Our own options, and what is passed on as it is. Ends the program on a usage error."""
    parser = _parser()
    options, rest = parser.parse_known_args(argv)
    if rest[:1] == ["--"]:
        del rest[0]
    if rest and options.command in ("setup", "check", "package"):
        parser.error(f"{options.command} takes no {rest[0]}")
    return options, rest


def _command(tree: ProjectTree, options: argparse.Namespace, rest: list[str], worked: bool) -> int:
    match options.command:
        case "setup":
            print("Everything is set up." if worked else "Nothing to do: everything is set up.")
            return 0
        case "run":
            return commands.run(tree, rest)
        case "test":
            return commands.test(tree, rest, long=options.long)
        case "check":
            return commands.check(tree)
        case "bench":
            return commands.bench(tree, rest)
        case "package":
            return commands.package(tree, (options.into or tree.root / "dist" / "octavo-tree").absolute())
        case other:
            raise AssertionError(other)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dev.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_subparsers(dest="command", required=True, metavar="COMMAND").add_parser
    add("setup", help="only set everything up")
    add("run", help="start Octavo; further arguments are passed on to it", prefix_chars="\0")
    test = add("test", help="run the tests; further arguments are passed on to pytest", allow_abbrev=False)
    test.add_argument(
        "--long", action="store_true", help="also the tests that take minutes; writes docs/benchmarks/long-tests.md"
    )
    add("check", help="run ruff, mypy and import-linter")
    add("bench", help="measure; further arguments are passed on to `octavo bench`")
    package = add("package", help="make a folder that runs without this checkout")
    package.add_argument("--into", type=Path, help="the folder; default: dist/octavo-tree here")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
