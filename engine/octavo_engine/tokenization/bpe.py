"""Builds the byte-level BPE of a GGUF file's vocabulary with the `tokenizers` library. Knows no special tokens."""

from __future__ import annotations

from collections.abc import Sequence

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

from octavo_engine.errors import ModelLoadError

# How GGUF's tokenizer.ggml.pre names split a text before the merges (patterns: GPT-2 and Llama 3 tokenizers).
_GPT2_SPLIT = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_SINGLE_DIGITS = frozenset({"smollm", "refact", "command-r", "starcoder", "codeshell", "exaone", "minerva-7b"})
_PLAIN = frozenset({"gpt-2", "gpt2", "default", "phi-2", "olmo", "jais", "mpt"})


def byte_level_bpe(tokens: Sequence[str], merges: Sequence[str], split: str) -> Tokenizer:
    """A tokenizer over `tokens` (by id) with `merges` ("left right", best first), split by the named pre-tokenizer.

    Raises:
        ModelLoadError: the pre-tokenizer is unknown, or a merge names a token that is not in the vocabulary.
    """
    vocabulary = {token: index for index, token in enumerate(tokens)}
    pairs = [(left, right) for left, _, right in (merge.partition(" ") for merge in merges)]
    try:
        tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=pairs))
    except Exception as fault:  # the library raises bare Exception for bad merges
        raise ModelLoadError(
            f"The tokenizer in the model file is damaged ({fault}); download the file again."
        ) from fault
    tokenizer.pre_tokenizer = _pre_tokenizer(split)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def _pre_tokenizer(split: str) -> pre_tokenizers.PreTokenizer:
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    words = pre_tokenizers.Split(Regex(_GPT2_SPLIT), behavior="isolated")
    if split in _SINGLE_DIGITS:
        return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), words, byte_level])
    if split in _PLAIN:
        return pre_tokenizers.Sequence([words, byte_level])
    known = ", ".join(sorted(_SINGLE_DIGITS | _PLAIN))
    raise ModelLoadError(f"Octavo does not know the pre-tokenizer {split!r} of this model yet; it knows {known}.")


def byte_of_character() -> dict[str, bytes]:
    """The byte that each character of a byte-level vocabulary stands for (GPT-2's bytes_to_unicode)."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = (byte for byte in range(256) if byte not in printable)
    table = {chr(byte): bytes((byte,)) for byte in printable}
    return table | {chr(256 + index): bytes((byte,)) for index, byte in enumerate(others)}
