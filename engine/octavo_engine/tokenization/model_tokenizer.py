"""A model's tokenizer: control tokens kept apart from text, and conversations in the words of its chat template.

Knows neither files nor how plain text is split: `Vocabulary` and `Encoder` do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from octavo_engine.errors import TemplateError
from octavo_engine.request import Message
from octavo_engine.tokenization.built_in_templates import template_source
from octavo_engine.tokenization.chat_template import ChatTemplate, Rendered
from octavo_engine.tokenization.encoder import Encoder, SpacePrefix
from octavo_engine.tokenization.single_tokens import SingleTokens
from octavo_engine.tokenization.vocabulary import TokenKind, Vocabulary

# What C's isspace takes; tokens that swallow white space swallow this.
_BLANKS = " \t\n\v\f\r"


class ModelTokenizer:
    """Text and conversations to tokens and back.

    Control tokens are recognised in templates and raw prompts only; user-defined tokens are single tokens everywhere.
    """

    def __init__(
        self, vocabulary: Vocabulary, encoder: Encoder, templates: Mapping[str, str], chat_template: str | None = None
    ) -> None:
        """Join the parts; `templates` are the model's own by name, `chat_template` (Jinja or a name) replaces them."""
        self.vocab_size = len(vocabulary.tokens)
        self.bos_id = vocabulary.bos_id
        self.eos_ids = vocabulary.eos_ids
        self._vocabulary = vocabulary
        self._encoder = encoder
        control = vocabulary.of_kind(TokenKind.CONTROL, TokenKind.UNKNOWN)
        user_defined = vocabulary.of_kind(TokenKind.USER_DEFINED)
        self._control_ids = frozenset(control.values())
        # A guard cannot stand inside a single character, so such a control token is not recognised in any text.
        control = {text: token for text, token in control.items() if len(text) > 1}
        self._control = SingleTokens(control)
        self._user_defined = SingleTokens(user_defined)
        self._all = SingleTokens(user_defined | control)
        self._templates = templates
        self._choice = chat_template
        self._compiled: dict[str, ChatTemplate] = {}

    def encode(self, text: str, *, add_bos: bool = False, parse_special: bool = True) -> list[int]:
        """Tokens of a text; with `add_bos` the beginning token stands first once, where the model wants one."""
        ids = self._pieces(text, self._all if parse_special else self._user_defined)
        return self._with_bos(ids) if add_bos else ids

    def decode(self, ids: Sequence[int], *, skip_special: bool = False) -> str:
        """Text of tokens; incomplete characters become U+FFFD, control tokens are spelt out unless skipped.

        The space that `encode` puts before a text is left out again.
        """
        parts: list[bytes] = []
        is_space_due = self._encoder.space_prefix is not SpacePrefix.NEVER
        for token in ids:
            if token in self._control_ids:
                parts.append(b"" if skip_special else self._vocabulary.tokens[token].encode())
                continue
            part = self._encoder.token_bytes(token)
            parts.append(part[1:] if is_space_due and part.startswith(b" ") else part)
            is_space_due = is_space_due and not part
        return b"".join(parts).decode("utf-8", errors="replace")

    def token_bytes(self, token: int) -> bytes:
        """UTF-8 bytes that a token stands for; none for control tokens."""
        return b"" if token in self._control_ids else self._encoder.token_bytes(token)

    def begins_text(self, ids: Sequence[int]) -> bool:
        """Whether a space at the beginning of what follows `ids` stands for the beginning of a text only."""
        prefix = self._encoder.space_prefix
        return (
            not ids
            if prefix is SpacePrefix.FIRST
            else prefix is SpacePrefix.EACH and (not ids or ids[-1] in self._control_ids)
        )

    def count(self, text_or_messages: str | Sequence[Message | Mapping[str, Any]]) -> int:
        """Number of tokens of a text or of a rendered conversation."""
        if isinstance(text_or_messages, str):
            return len(self.encode(text_or_messages, parse_special=False))
        return len(self.apply_chat_template(text_or_messages))

    def apply_chat_template(
        self,
        messages: Sequence[Message | Mapping[str, Any]],
        *,
        tools: Sequence[Any] | None = None,
        generation_prompt: bool = True,
        options: Mapping[str, Any] | None = None,
    ) -> list[int]:
        """Tokens of a conversation; its text never becomes control tokens.

        An answer with `token_ids` is taken as these tokens where they stand for just the text that the template makes
        of it, so that its pages are found again.

        Raises:
            TemplateError: the model has no template, or it is broken or rejects these messages.
        """
        turns = [Message.of(message) for message in messages]
        known = [number for number, turn in enumerate(turns) if self._stands_for(turn)]
        rendered = self._template(bool(tools)).render(
            turns, tools=tools, generation_prompt=generation_prompt, options=options or {}, bracketed=known
        )
        return self._with_bos(self._with_known_answers(rendered, turns))

    def _stands_for(self, turn: Message) -> bool:
        """Whether the tokens of an answer are its text and hold no control token."""
        if turn.role != "assistant" or not turn.token_ids or not isinstance(turn.content, str):
            return False
        if not all(0 <= token < self.vocab_size for token in turn.token_ids):
            return False
        if not self._control_ids.isdisjoint(turn.token_ids):
            return False
        return self._text(turn.token_ids) in (turn.content, " " + turn.content)

    def _text(self, ids: Sequence[int]) -> str:
        return b"".join(map(self._encoder.token_bytes, ids)).decode("utf-8", errors="replace")

    def _with_known_answers(self, rendered: Rendered, turns: Sequence[Message]) -> list[int]:
        """The tokens of a conversation with those of its answers in place where they are just the rendered text."""
        ids: list[int] = []
        pending = ""
        parts = rendered.parts
        shown = Counter(number for _, number in parts)
        for index, (text, number) in enumerate(parts):
            after = parts[index + 1][0] if index + 1 < len(parts) else ""
            if (
                number is None
                or shown[number] > 1
                or not self._fits(turns[number], text.replace(rendered.guard, ""), after)
            ):
                pending += text
                continue
            answer = turns[number]
            assert answer.token_ids is not None
            before = self._room_for(answer, pending)
            if before is None:
                pending += text
                continue
            ids += self._pieces(before, self._all, guard=rendered.guard, is_first=not ids)
            ids += answer.token_ids
            pending = ""
        return ids + self._pieces(pending, self._all, guard=rendered.guard, is_first=not ids)

    def _fits(self, answer: Message, text: str, after: str) -> bool:
        # An answer ends where a control token follows; elsewhere its last token might have become another one.
        return text == answer.content and (not after or self._control.at(after, 0) is not None)

    def _room_for(self, answer: Message, before: str) -> str | None:
        """The text before an answer, less a space that its first token brings; None where it brings one too many."""
        assert answer.token_ids is not None
        if self._text(answer.token_ids) == answer.content:
            return before
        if before.endswith(" "):
            return before[:-1]
        begins = not before or (self._encoder.space_prefix is SpacePrefix.EACH and self._control.ends(before))
        return before if begins else None

    def _template(self, has_tools: bool) -> ChatTemplate:
        name = "tool_use" if has_tools and self._choice is None and "tool_use" in self._templates else "default"
        if name not in self._compiled:
            source = self._templates.get(name) if self._choice is None else template_source(self._choice)
            if not source:
                raise TemplateError(
                    "This model has no chat template; choose one of Octavo's (such as chatml) or write your own, "
                    "or send a plain prompt."
                )
            self._compiled[name] = ChatTemplate(source, self._control, self._vocabulary.named)
        return self._compiled[name]

    def _pieces(self, text: str, single: SingleTokens, *, guard: str = "", is_first: bool = True) -> list[int]:
        text = _well_formed(text)
        ids: list[int] = []
        prefix = self._encoder.space_prefix
        is_due = is_first and prefix is not SpacePrefix.NEVER
        parts = list(single.split(text))
        for index, part in enumerate(parts):
            if isinstance(part, int):
                ids.append(part)
                is_due = prefix is SpacePrefix.EACH
            elif plain := self._stripped(parts, index).replace(guard, ""):
                ids += self._encoder.encode(plain, prefixed=is_due)
                is_due = False
        return ids

    def _stripped(self, parts: Sequence[str | int], index: int) -> str:
        """The text with this index, less the white space that the tokens beside it swallow."""
        text = parts[index]
        assert isinstance(text, str)
        if index and parts[index - 1] in self._vocabulary.strips_right:
            text = text.lstrip(_BLANKS)
        if index + 1 < len(parts) and parts[index + 1] in self._vocabulary.strips_left:
            text = text.rstrip(_BLANKS)
        return text

    def _with_bos(self, ids: list[int]) -> list[int]:
        if self._vocabulary.add_bos and self.bos_id is not None and ids[:1] != [self.bos_id]:
            return [self.bos_id, *ids]
        return ids


def _well_formed(text: str) -> str:
    """The text with lone surrogates, which have no UTF-8, replaced."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
