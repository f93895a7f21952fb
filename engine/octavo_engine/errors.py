"""Typed errors of the engine, each with a sentence for people and, where there are numbers, needed and available.

Knows nothing of models, tensors or windows.
"""


class EngineError(Exception):
    """Base of all errors that the engine raises or reports.

    Attributes:
        message: one or two sentences for people: what happened and what to do.
        needed: the amount that was required (bytes, tokens or pages, as the message says), or None.
        available: the amount that there was, in the same unit, or None.
    """

    def __init__(self, message: str, *, needed: int | None = None, available: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.needed = needed
        self.available = available


class ModelLoadError(EngineError):
    """The model cannot be opened: missing, damaged, or of a kind that Octavo does not run."""


class LoadCancelled(EngineError):
    """The caller's progress function returned False while the model was loading."""


class OutOfMemory(EngineError):
    """The device or the machine has not enough memory for what was asked."""


class ContextOverflow(EngineError):
    """The prompt is longer than the context of the model (tokens)."""


class PromptTooLarge(EngineError):
    """The prompt fits the context but can never fit the page pool (pages)."""


class TemplateError(EngineError):
    """The chat template is missing, broken, or rejects these messages."""


class GrammarError(EngineError):
    """The grammar does not compile."""


class InvalidRequest(EngineError):
    """A request that cannot be served as it stands: a value out of range, or what this version does not do."""


class EngineClosed(EngineError):
    """The engine was closed, or its thread has died; nothing more will be answered."""


def closed_error() -> EngineClosed:
    """What every submission to a closed engine is answered with."""
    return EngineClosed("The engine is closed; open the model again.")
