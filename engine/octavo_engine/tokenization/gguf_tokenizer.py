"""The tokenizer and chat template of a GGUF file, rebuilt from its header."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from octavo_engine.errors import ModelLoadError, TemplateError
from octavo_engine.request import Message
from octavo_engine.tokenization.bpe import byte_level_bpe, byte_of_character
from octavo_engine.tokenization.chat_template import ChatTemplate, Rendered

# Token types of tokenizer.ggml.token_type (GGUF specification).
_CONTROL = 3
_USER_DEFINED = 4
# Tokens that end a turn in the templates of common model families, whatever eos_token_id says.
_TURN_ENDS = frozenset({"<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<end_of_turn>", "<|end|>", "<|endoftext|>", "</s>"})


class GgufTokenizer:
    """Byte-level BPE with control tokens, and the model's chat template.

    Control tokens are recognised in templates and raw prompts only; user-defined tokens are single tokens everywhere.
    """

    def __init__(self, metadata: Mapping[str, Any], chat_template: str | None = None) -> None:
        """Rebuild the tokenizer that a header's `metadata` describes; `chat_template` replaces the model's own.

        Raises:
            ModelLoadError: the header has no tokenizer, a damaged one, or one of a kind that Octavo does not read.
        """
        kind = metadata.get("tokenizer.ggml.model")
        if kind != "gpt2":
            raise ModelLoadError(
                "The model file holds no tokenizer; download it again."
                if kind is None
                else f"Octavo does not read tokenizers of the kind {kind!r} yet; it reads byte-level BPE (gpt2)."
            )
        tokens: Sequence[str] = metadata["tokenizer.ggml.tokens"]
        types: Sequence[int] = metadata["tokenizer.ggml.token_type"]
        if len(types) != len(tokens):
            raise ModelLoadError(
                f"The tokenizer in the model file has {len(tokens)} tokens and {len(types)} types; download it again."
            )
        self._bpe = byte_level_bpe(
            tokens, metadata["tokenizer.ggml.merges"], str(metadata.get("tokenizer.ggml.pre", "default"))
        )
        control = {token: index for index, token in enumerate(tokens) if types[index] == _CONTROL}
        user_defined = {token: index for index, token in enumerate(tokens) if types[index] == _USER_DEFINED}
        self.vocab_size = len(tokens)
        self.bos_id: int | None = metadata.get("tokenizer.ggml.bos_token_id")
        self._add_bos = bool(metadata.get("tokenizer.ggml.add_bos_token", False))
        self.eos_ids = _end_tokens(metadata, control)
        self._control_ids = frozenset(control.values())
        self._single = user_defined | control
        self._split_all = _splitter(self._single)
        self._split_user_defined = _splitter(user_defined)
        self._tokens = tokens
        self._byte_of = byte_of_character()
        self._source = chat_template if chat_template is not None else metadata.get("tokenizer.chat_template")
        self._template: ChatTemplate | None = None

    def encode(self, text: str, *, add_bos: bool = False, parse_special: bool = True) -> list[int]:
        """Tokens of a text; with `add_bos` the beginning token stands first once, where the model wants one."""
        ids = self._pieces(text, self._split_all if parse_special else self._split_user_defined, "")
        return self._with_bos(ids) if add_bos else ids

    def decode(self, ids: Sequence[int], *, skip_special: bool = False) -> str:
        """Text of tokens; incomplete characters become U+FFFD, control tokens are spelt out unless skipped."""
        parts = (
            self._tokens[token].encode() if token in self._control_ids and not skip_special else self.token_bytes(token)
            for token in ids
        )
        return b"".join(parts).decode("utf-8", errors="replace")

    def token_bytes(self, token: int) -> bytes:
        """UTF-8 bytes that a token stands for; none for control tokens."""
        if token in self._control_ids:
            return b""
        text = self._tokens[token]
        if text in self._single:
            return text.encode()
        return b"".join(self._byte_of.get(character) or character.encode() for character in text)

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
        if self._template is None:
            self._template = self._compiled()
        turns = [Message.of(message) for message in messages]
        render = partial(self._template.render, turns, generation_prompt=generation_prompt, options=options or {})
        rendered = render()
        known = [number for number, turn in enumerate(turns) if self._stands_for(turn)]
        ids = None
        if known:
            ids = self._with_known_answers(rendered, render(bracketed=known), [turns[number] for number in known])
        return self._with_bos(ids or self._pieces(rendered.text, self._split_all, rendered.guard))

    def _stands_for(self, turn: Message) -> bool:
        """Whether the tokens of an answer are its text and hold no control token."""
        if turn.role != "assistant" or not turn.token_ids or not isinstance(turn.content, str):
            return False
        in_vocabulary = all(0 <= token < self.vocab_size for token in turn.token_ids)
        return (
            in_vocabulary
            and self._control_ids.isdisjoint(turn.token_ids)
            and self.decode(turn.token_ids) == turn.content
        )

    def _with_known_answers(
        self, rendered: Rendered, bracketed: Rendered, answers: Sequence[Message]
    ) -> list[int] | None:
        """The tokens of a conversation with those of its `answers` in place; None where the template changes them."""
        opening, closing = bracketed.opening, bracketed.closing
        if bracketed.text.replace(opening, "").replace(closing, "") != rendered.text:
            return None
        text, *parts = bracketed.text.split(opening)
        if len(parts) != len(answers):
            return None
        ids: list[int] = []
        for answer, part in zip(answers, parts, strict=True):
            content, _, after = part.partition(closing)
            assert answer.token_ids is not None
            # An answer ends where a control token follows; elsewhere its last token might have become another one.
            ends = not after or self._begins_with_control_token(after)
            if ends and content.replace(rendered.guard, "") == answer.content:
                ids += [*self._pieces(text, self._split_all, rendered.guard), *answer.token_ids]
                text = after
            else:
                text += content + after
        return ids + self._pieces(text, self._split_all, rendered.guard)

    def _begins_with_control_token(self, text: str) -> bool:
        found = self._split_all.match(text) if self._split_all else None
        return found is not None and self._single.get(found.group()) in self._control_ids

    def _compiled(self) -> ChatTemplate:
        if not self._source:
            raise TemplateError("This model has no chat template; send a plain prompt, or give it a template.")
        names = {"bos_token": self.bos_id, "eos_token": next(iter(sorted(self.eos_ids)), None)}
        variables = {name: self._tokens[token] for name, token in names.items() if token is not None}
        control = [self._tokens[token] for token in self._control_ids]
        return ChatTemplate(self._source, control, variables)

    def _pieces(self, text: str, splitter: re.Pattern[str] | None, marker: str) -> list[int]:
        ids: list[int] = []
        for piece in splitter.split(text) if splitter else (text,):
            if splitter and piece in self._single and splitter.fullmatch(piece):
                ids.append(self._single[piece])
            elif piece:
                plain = piece.replace(marker, "") if marker else piece
                ids += self._bpe.encode(plain, add_special_tokens=False).ids
        return ids

    def _with_bos(self, ids: list[int]) -> list[int]:
        if self._add_bos and self.bos_id is not None and ids[:1] != [self.bos_id]:
            return [self.bos_id, *ids]
        return ids


def _splitter(single: Mapping[str, int]) -> re.Pattern[str] | None:
    """A pattern whose `split` keeps the single tokens as pieces; the longest wins where several begin."""
    if not single:
        return None
    return re.compile("(" + "|".join(map(re.escape, sorted(single, key=len, reverse=True))) + ")")


def _end_tokens(metadata: Mapping[str, Any], control: Mapping[str, int]) -> frozenset[int]:
    named = (metadata.get(f"tokenizer.ggml.{name}_token_id") for name in ("eos", "eot", "eom"))
    return frozenset(int(token) for token in named if token is not None) | frozenset(
        control[token] for token in _TURN_ENDS if token in control
    )
