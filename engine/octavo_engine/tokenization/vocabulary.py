"""A model's tokens and what each is for. Knows no way to split a text into them."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from octavo_engine.errors import ModelLoadError


class TokenKind(enum.IntEnum):
    """What a token is for; numbers as in GGUF's tokenizer.ggml.token_type and SentencePiece's model files."""

    UNDEFINED = 0
    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


# Tokens that begin or end a turn whatever a file says of their kind; a text that spells them must not become them.
_TURN_MARKS = frozenset(
    {
        "<|im_start|>", "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|start_header_id|>", "<|end_header_id|>",
        "<|begin_of_text|>", "<|end_of_text|>", "<start_of_turn>", "<end_of_turn>", "<|turn>", "<turn|>", "<|end|>",
        "<|user|>", "<|assistant|>", "<|system|>", "<|endoftext|>", "<|return|>", "<|call|>", "<|start|>",
        "<|message|>", "<|channel|>", "<|constrain|>", "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜User｜>",
        "<｜Assistant｜>", "<end_of_utterance>",
    }
)  # fmt: skip
# Control tokens that end a turn in the templates of common model families, whatever eos_token_id says.
_TURN_ENDS = frozenset(
    {
        "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<end_of_turn>", "<turn|>", "<|end|>", "<|endoftext|>", "</s>",
        "<|end_of_text|>", "<|return|>", "<|call|>", "<｜end▁of▁sentence｜>", "<end_of_utterance>", "[EOT]", "<EOT>",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The tokens of a model, by id.

    Attributes:
        tokens: as the file spells them: in byte characters, or with U+2581 for a space.
        kinds: a `TokenKind` for each.
        bos_id: begins a text, where the model has such a token.
        eos_ids: all that end a turn or a text.
        add_bos: whether a text is to begin with `bos_id`.
        strips_right, strips_left: single tokens that swallow the white space beside them.
        named: special tokens by the names that chat templates use (bos_token, eos_token, ...).
    """

    tokens: Sequence[str]
    kinds: Sequence[int]
    bos_id: int | None = None
    eos_ids: frozenset[int] = frozenset()
    add_bos: bool = False
    strips_right: frozenset[int] = frozenset()
    strips_left: frozenset[int] = frozenset()
    named: Mapping[str, str] = field(default_factory=dict)

    def of_kind(self, *kinds: TokenKind) -> dict[str, int]:
        """The tokens of these kinds, text to id."""
        wanted = frozenset(map(int, kinds))
        tokens = self.tokens
        return {tokens[index]: index for index, kind in enumerate(self.kinds) if kind in wanted}


def checked_kinds(tokens: Sequence[str], kinds: Iterable[int] | None) -> list[int]:
    """The kind of each token, with the marks of turns made control tokens.

    Raises:
        ModelLoadError: there are more or fewer kinds than tokens.
    """
    checked = [int(TokenKind.NORMAL)] * len(tokens) if kinds is None else [int(kind) for kind in kinds]
    if len(checked) != len(tokens):
        raise ModelLoadError(
            f"The tokenizer in the model file has {len(tokens)} tokens and {len(checked)} types; download it again."
        )
    if not _TURN_MARKS.isdisjoint(tokens):
        for index, token in enumerate(tokens):
            if token in _TURN_MARKS:
                checked[index] = int(TokenKind.CONTROL)
    return checked


def end_tokens(control: Mapping[str, int], named: Iterable[int | None]) -> frozenset[int]:
    """The ids that end a turn: those `named` by the file and the control tokens known to do so."""
    ends = {control[token] for token in _TURN_ENDS if token in control}
    if "<|return|>" in control and "<|call|>" in control:
        # There <|end|> closes one of several parts of a turn.
        ends.discard(control.get("<|end|>", -1))
    return frozenset(ends) | frozenset(token for token in named if token is not None)
