"""From the engine's words to the chat's: its events and its errors."""

from __future__ import annotations

from collections.abc import Iterable

from octavo.chat.advice import Advice
from octavo.chat.answer import AnswerEvent, Began, Broken, Ended, Held, Holdup, Text
from octavo_engine import (
    ContextOverflow,
    Delta,
    EngineClosed,
    EngineError,
    Event,
    Failed,
    Finished,
    ModelLoadError,
    OutOfMemory,
    Preempted,
    Progress,
    PromptTooLarge,
    Resumed,
    Started,
    TemplateError,
    Waiting,
)

_ADVICE = (
    (ModelLoadError, Advice.CHOOSE_MODEL),
    (TemplateError, Advice.CHOOSE_MODEL),
    (OutOfMemory, Advice.RETRY),
    (EngineClosed, Advice.RETRY),
    ((ContextOverflow, PromptTooLarge), Advice.NEW_CHAT),
)


def advice_for(error: EngineError) -> Advice | None:
    """What the reader can do about an error; None where there is nothing but reading it."""
    return next((advice for kind, advice in _ADVICE if isinstance(error, kind)), None)


def answer_events(events: Iterable[Event], model: str) -> list[AnswerEvent]:
    """The events in the chat's words; neighbouring pieces of text become one."""
    translated: list[AnswerEvent] = []
    for event in events:
        match event:
            case Delta(kind="text", text=text, token_ids=token_ids):
                last = translated[-1] if translated else None
                if isinstance(last, Text):
                    translated[-1] = Text(last.text + text, last.token_ids + token_ids)
                else:
                    translated.append(Text(text, token_ids))
            case Started():
                translated.append(Began(model, event.prompt_tokens, event.cached_tokens))
            case Progress(computed, total):
                translated.append(Held(Holdup.READING, f"Reading the prompt, {computed:,} of {total:,} tokens"))
            case Waiting(reason, position):
                translated.append(_waiting(reason, position))
            case Preempted():
                translated.append(Held(Holdup.MEMORY, "Paused until other answers give memory back"))
            case Resumed():
                translated.append(Held(Holdup.READING, ""))
            case Finished(reason=reason, usage=usage, timings=timings):
                translated.append(
                    Ended(
                        reason=reason,
                        prompt_tokens=usage.prompt_tokens,
                        cached_tokens=usage.cached_tokens,
                        completion_tokens=usage.completion_tokens,
                        ttft=timings.ttft,
                        seconds=timings.total,
                    )
                )
            case Failed(error):
                translated.append(Broken(error.message, advice_for(error)))
    return translated


def _waiting(reason: str, position: int) -> Held:
    line = "Next in line" if position == 1 else f"{_ordinal(position)} in line"
    if reason == "free pages":
        return Held(Holdup.MEMORY, f"{line}, waiting for memory")
    if reason == "its pages from disk":
        return Held(Holdup.READING, "Reading from disk what the model knows of this chat")
    return Held(Holdup.QUEUED, line)


def _ordinal(number: int) -> str:
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"
