"""Turns what the `tokenizers` library raises on damaged input into the engine's error. Knows no kind of tokenizer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from octavo_engine.errors import ModelLoadError


@contextmanager
def damage_in(what: str) -> Iterator[None]:
    """Raise ModelLoadError, naming `what` as damaged, for any fault of the library inside the block.

    The library raises bare Exception, and where its own checks miss something a panic, which is no Exception.
    """
    try:
        yield
    except ModelLoadError:
        raise
    except BaseException as fault:
        if not isinstance(fault, Exception) and type(fault).__name__ != "PanicException":
            raise
        raise ModelLoadError(f"{what} is damaged ({fault}); get the model again.") from fault
