"""What may stand on the command line. Knows no command's work."""

from __future__ import annotations

import argparse
from importlib.metadata import version
from pathlib import Path

COMMANDS = ("bench", "chat", "doctor")
_WEIGHTS = ("auto", "bfloat16", "float32", "int8", "int4")


def window_parser() -> argparse.ArgumentParser:
    """`octavo [FILE...]`, which opens the window."""
    parser = argparse.ArgumentParser(
        prog="octavo",
        description="Talk to language models on your own machine.",
        epilog=f"Commands: {', '.join(f'octavo {name}' for name in COMMANDS)}; each has a --help of its own.",
    )
    parser.add_argument("files", nargs="*", metavar="FILE", help="a model to open: a .gguf file or a folder")
    parser.add_argument(
        "--engine", metavar="fake[:SCRIPT.json]", type=_engine, help="answer from a script instead of a model"
    )
    parser.add_argument("--version", action="version", version=f"Octavo {version('octavo')}")
    return parser


def command_parser(name: str) -> argparse.ArgumentParser:
    """One of `COMMANDS`."""
    return {"bench": _bench, "chat": _chat, "doctor": _doctor}[name]()


def _engine(name: str) -> str:
    """The name itself, if there is such an engine."""
    from octavo.engine_client import ScriptError, read_script

    try:
        read_script(name)
    except ScriptError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return name


def _bench() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="octavo bench",
        description="Measure the engine on this machine and compare it with its goals. Minutes; close other programs.",
    )
    parser.add_argument("--suite", metavar="NAME", default="paging", help="paging (the default) or models")
    parser.add_argument("--model", metavar="MODEL", help="the model; by default the starter model")
    parser.add_argument("--only", metavar="PART,...", type=_parts, default=(), help="only these parts of the suite")
    parser.add_argument("--quick", action="store_true", help="short lengths, to see that it works")
    parser.add_argument("--save", metavar="FOLDER", type=Path, help="keep report and plots (Markdown, JSON, SVG) here")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


def _parts(names: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in names.split(",") if name.strip())


def _chat() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="octavo chat",
        description="Talk in the terminal, or answer one prompt. Nothing is stored.",
    )
    parser.add_argument("--model", metavar="MODEL", help="a .gguf file, a folder, or the name of one of your models")
    parser.add_argument("--prompt", metavar="TEXT", help="answer this and end; without it, talk")
    parser.add_argument("--system", metavar="TEXT", help="the system prompt; an empty one leaves it out")
    parser.add_argument("--temperature", type=float, metavar="T", help="0 takes the most likely token each time")
    parser.add_argument("--max-tokens", type=int, metavar="N", help="end an answer after so many tokens")
    parser.add_argument("--seed", type=int, metavar="N", help="the same seed gives the same answer")
    parser.add_argument(
        "--weights",
        choices=_WEIGHTS,
        default="auto",
        help="layout of the weights; int8 and int4 round what has more bits",
    )
    parser.add_argument(
        "--template", metavar="NAME", help="another chat template: chatml, llama3, mistral, ... or a file with Jinja"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object for each answer")
    parser.add_argument("--stream", action="store_true", help="print a JSON line for each event")
    return parser


def _doctor() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="octavo doctor",
        description="Say what runs here and whether it works: versions, devices, kernels, files, a self-test.",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--model", metavar="MODEL", help="the model of the self-test; by default the starter model")
    return parser
