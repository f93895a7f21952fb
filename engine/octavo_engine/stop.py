"""When an answer ends. Knows tokens and limits only, no text."""

from __future__ import annotations

from octavo_engine.events import FinishReason
from octavo_engine.sequence import Sequence


def append_token(sequence: Sequence, token: int, *, context: int) -> FinishReason | None:
    """Add a drawn token to the output, unless it ends the answer; the reason when the answer is over, else None.

    Args:
        sequence: the sequence that the token was drawn for.
        token: the token.
        context: positions that one sequence may have.
    """
    if sequence.sampling.max_tokens == 0:
        return "length"
    if token in sequence.end_ids:
        sequence.ended_by = token
        return "stop"
    sequence.tokens.append(token)
    if sequence.sampling.max_tokens is not None and sequence.own_length >= sequence.sampling.max_tokens:
        return "length"
    return "context" if len(sequence.tokens) >= context else None
