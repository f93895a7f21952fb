"""`octavo chat`: answers one prompt, or talks until the input ends. Needs no display, stores nothing."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from octavo.cli.answer_printer import AnswerPrinter, printer_for
from octavo.cli.complaint import complain, exit_code_of
from octavo.cli.conversation import Conversation
from octavo.cli.exit_code import ExitCode
from octavo.cli.opened_model import OpenedModel, opened_model
from octavo.engine_client import EngineConfig, EngineError, InvalidRequest, SamplingParams
from octavo.library.shelf import NoModel
from octavo.paths import default_system_prompt


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatOptions:
    """The flags of `octavo chat`; None where one was not given."""

    model: str | None = None
    prompt: str | None = None
    system: str | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    weights: Literal["auto", "bfloat16", "float32", "int8", "int4"] = "auto"
    template: str | None = None
    json: bool = False
    stream: bool = False

    @property
    def sampling(self) -> SamplingParams:
        """How answers are drawn."""
        sampling = SamplingParams(max_tokens=self.max_tokens, seed=self.seed)
        return sampling if self.temperature is None else replace(sampling, temperature=self.temperature)

    @property
    def config(self) -> EngineConfig:
        """How the model is opened; a template that names a file is read from it."""
        template = self.template
        if template is not None and Path(template).is_file():
            template = Path(template).read_text(encoding="utf-8", errors="replace")
        return EngineConfig(weights=self.weights, chat_template=template)


def run_chat(options: ChatOptions) -> ExitCode:
    """Run the command."""
    as_json = options.json or options.stream
    try:
        if options.prompt is not None and not options.prompt.strip():
            raise InvalidRequest("The prompt is empty; there is nothing to answer.")
        with opened_model(options.model, options.config) as opened:
            return _Talk(options, opened).run()
    except (EngineError, NoModel) as error:
        return complain(error, as_json=as_json)


class _Talk:
    """One run of the command over a model that is open."""

    def __init__(self, options: ChatOptions, opened: OpenedModel) -> None:
        self._prompt = options.prompt
        self._as_json = options.json or options.stream
        self._as_events = options.stream
        self._model = opened.engine.info.name
        self._load_seconds = opened.load_seconds
        self._printer: AnswerPrinter = printer_for(as_json=options.json, as_events=options.stream)
        system = default_system_prompt() if options.system is None else options.system
        self._conversation = Conversation(opened.engine, system=system, sampling=options.sampling)

    def run(self) -> ExitCode:
        if self._prompt is not None:
            return self._answer(self._prompt)
        if not sys.stdin.isatty():
            questions = (line for line in sys.stdin if line.strip())
            return max((self._answer(question.rstrip("\r\n")) for question in questions), default=ExitCode.OK)
        print(f"Talking to {self._model}. Ctrl+C stops an answer, Ctrl+D leaves.", file=sys.stderr, flush=True)
        for question in _typed():
            self._answer(question)
        return ExitCode.OK

    def _answer(self, question: str) -> ExitCode:
        try:
            completion = self._conversation.ask(question, self._printer.event)
        except EngineError as error:
            # The stream has told of an error that came as an event; what was refused before has had no event.
            if self._as_events and not isinstance(error, InvalidRequest):
                return exit_code_of(error)
            return complain(error, as_json=self._as_json)
        self._printer.end(completion, model=self._model, load_seconds=self._load_seconds)
        return ExitCode.INTERRUPTED if completion.reason == "cancelled" else ExitCode.OK


def _typed() -> Iterator[str]:
    """Questions typed at a prompt, until Ctrl+D; with the line editing that the platform has."""
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401 - importing it is what gives `input` its editing
    while True:
        try:
            question = input("> ")
        except EOFError:
            print()
            return
        if question.strip():
            yield question
