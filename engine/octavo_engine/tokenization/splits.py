"""How each pre-tokenizer that GGUF files name splits a text before the merges: a table of patterns. Runs none of them.

A pattern isolates what it matches from what stands between; several are applied one after the other to all pieces. They
are those of the models' own tokenizer.json where these are known, else llama.cpp's (src/llama-vocab.cpp).
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from octavo_engine.errors import ModelLoadError


@dataclass(frozen=True, slots=True)
class Split:
    """One pre-tokenizer.

    Attributes:
        patterns: regular expressions in Oniguruma's syntax, applied in order.
        whole_words: a word that is in the vocabulary is one token, whatever the merges say.
        add_bos: whether a text begins with the beginning token where the file does not say.
        escapes_spaces: spaces become U+2581 and bytes without a token <0x..>, instead of byte characters.
    """

    patterns: tuple[str, ...]
    whole_words: bool = False
    add_bos: bool = False
    escapes_spaces: bool = False


_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_SHORTENED = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_WORD = r"[^\r\n\p{L}\p{N}]?\p{L}+"
_SIGNS = r" ?[^\s\p{L}\p{N}]+[\r\n]*"
_BLANKS = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_LLAMA3 = rf"{_SHORTENED}|{_WORD}|\p{{N}}{{1,3}}|{_SIGNS}|{_BLANKS}"
_QWEN2 = rf"{_SHORTENED}|{_WORD}|\p{{N}}|{_SIGNS}|{_BLANKS}"
# Words by case: capitals at most in front.
_UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
_LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_LEAD = r"[^\r\n\p{L}\p{N}]?"
_CASED = rf"{_LEAD}{_UPPER}*{_LOWER}+{_SHORTENED}?|{_LEAD}{_UPPER}+{_LOWER}*{_SHORTENED}?"
_CASED_BLANKS = r" ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_GPT4O = rf"{_CASED}|\p{{N}}{{1,3}}|{_CASED_BLANKS}"
_TEKKEN = rf"{_LEAD}{_UPPER}*{_LOWER}+|{_LEAD}{_UPPER}+{_LOWER}*|\p{{N}}|{_CASED_BLANKS}"
_ASCII_SIGN_WORD = r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"
_MARKED_WORD = r"[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
_DEEPSEEK3_WORDS = rf"{_ASCII_SIGN_WORD}|{_MARKED_WORD}| ?[\p{{P}}\p{{S}}]+[\r\n]*|{_BLANKS}"
_CJK_AND_KANA = r"[一-龥぀-ゟ゠-ヿ]+"
_NOT_HAN_UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]"
_NOT_HAN_LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]"
_KIMI = (
    rf"\p{{Han}}+|{_LEAD}{_NOT_HAN_UPPER}*{_NOT_HAN_LOWER}+{_SHORTENED}?"
    rf"|{_LEAD}{_NOT_HAN_UPPER}+{_NOT_HAN_LOWER}*{_SHORTENED}?|\p{{N}}{{1,3}}|{_SIGNS}|{_BLANKS}"
)
_BLOOM = r" ?[^(\s|.,!?…。，、।۔،)]+"
_JAIS2_BLANKS = "".join(rf"|\s{{{count}}}(?!\S)" for count in (512, 256, 128, 64, 32, 16, 8, 4))
# By number: some of these letters look like others.
_DEEPSEEK_LETTERS = (
    r"\s?[A-Za-z\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF}\x{1C4}-\x{293}\x{295}-\x{2AF}\x{370}"
    r"-\x{373}\x{376}\x{377}\x{37B}-\x{37D}\x{37F}\x{386}\x{388}-\x{38A}\x{38C}\x{38E}-\x{3A1}\x{3A3}-\x{3F5}"
    r"\x{3F7}-\x{481}\x{48A}-\x{52F}\x{531}-\x{556}\x{10A0}-\x{10C5}\x{13A0}-\x{13F5}\x{13F8}-\x{13FD}\x{1C90}-"
    r"\x{1CBA}\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77}\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15}\x{1F18}-"
    r"\x{1F1D}\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D}\x{1F50}-\x{1F57}\x{1F59}\x{1F5B}\x{1F5D}\x{1F5F}-\x{1F7D}\x{1F80}"
    r"-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4}\x{1FC6}-\x{1FCC}\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB}"
    r"\x{1FE0}-\x{1FEC}\x{1FF2}-\x{1FF4}\x{1FF6}-\x{1FFC}\x{2102}\x{2107}\x{210A}-\x{2113}\x{2115}\x{2119}-"
    r"\x{211D}\x{2124}\x{2126}\x{2128}\x{212A}-\x{212D}\x{212F}-\x{2134}\x{2139}\x{213C}-\x{213F}\x{2145}-\x{2149}"
    r"\x{214E}\x{2183}\x{2184}\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4}\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3}\x{A640}-\x{A66D}"
    r"\x{A680}-\x{A69B}\x{A722}-\x{A76F}\x{A771}-\x{A787}\x{A78B}-\x{A78E}\x{AB70}-\x{ABBF}\x{FB00}-\x{FB06}"
    r"\x{FB13}-\x{FB17}\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A}\x{10400}-\x{1044F}\x{104B0}-\x{104D3}\x{104D8}-\x{104FB}"
    r"\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2}\x{118A0}-\x{118DF}\x{1E900}-\x{1E943}]+"
)
_SOUTH_EAST_ASIAN = r"[一-鿿㐀-䶿豈-﫿぀-ゟ゠-ヿ･-ﾟ⼀-⿟เ-๿຀-໿ក-៿က-႟ꩠ-ꩿꧠ-꧿가-힯ᄀ-ᇿ]+"
_YOUTU_SCRIPTS = r"[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥぀-ゟ゠-ヿ]+"
# Words of one phrase stay together.
_EXAONE_WORDS = rf"{_LEAD}(?:\p{{L}}\p{{M}}*(?: \p{{L}}\p{{M}}*)*)+"
_SINGLE_LINES = r"|\s*[\r\n]|\s+(?!\S)|\s+"
_LINES = r"[^\n]+|[\n]+"

_GROUPS: tuple[tuple[str, Split], ...] = (
    ("gpt-2 gpt2 phi-2 mpt olmo jais trillion granite-docling jina-es jina-de gigachat jina-v2-es jina-v2-de a.x-4.0",
     Split((_GPT2,))),
    ("mellum modern-bert jina-v1-en jina-v2-code roberta-bpe exaone4", Split((_GPT2,))),
    ("starcoder refact command-r smollm codeshell exaone minerva-7b mellum2", Split((r"\p{N}", _GPT2))),
    ("default", Split((r"[\p{P}\$\+<=>\^~\|]+", _GPT2, r"\p{N}+", r"[0-9][0-9][0-9]"))),
    ("falcon", Split((r"[\p{P}\$\+<=>\^~\|`]+", _GPT2, r"[0-9][0-9][0-9]"))),
    ("llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano",
     Split((_LLAMA3,), whole_words=True, add_bos=True)),
    ("dbrx smaug-bpe chatglm-bpe", Split((_LLAMA3,))),
    ("glm4 glm5", Split((_LLAMA3,), whole_words=True)),
    ("minicpm5", Split((r"\p{N}{1,3}", rf"{_SHORTENED}|{_WORD}|\p{{N}}+|{_SIGNS}|{_BLANKS}"), whole_words=True)),
    ("jais-2", Split((rf"{_SHORTENED}|{_WORD}|\p{{N}}{{1,3}}|{_SIGNS}|\s*[\r\n]+{_JAIS2_BLANKS}|\s{{1,2}}(?!\S)|\s",))),
    ("qwen2 deepseek-r1-qwen kormo f2llmv2 megrez stablelm2 hunyuan solar-open grok-2", Split((_QWEN2,))),
    ("ufakzeka", Split((rf"{_WORD}|\p{{N}}|{_SIGNS}|{_BLANKS}",))),
    ("laguna", Split((_LINES, _QWEN2))),
    ("qwen35", Split((
        rf"{_SHORTENED}|{_LEAD}[\p{{L}}\p{{M}}]+|\p{{N}}| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{_BLANKS}",))),
    ("exaone-moe", Split((rf"{_SHORTENED}|{_EXAONE_WORDS}|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]?{_SINGLE_LINES}",))),
    ("bailingmoe bailingmoe2 llada-moe", Split((
        rf"'(?i:[sdmt]|ll|ve|re)|{_LEAD}+\p{{L}}+|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]++[\r\n]*{_SINGLE_LINES}",))),
    ("seed-coder", Split((rf"{_SHORTENED}|{_WORD}|\p{{N}}| ?[^\s\p{{L}}\p{{N}}\r\n]+|{_BLANKS}",))),
    ("gpt-4o llama4 kanana2 talkie minimax-m2", Split((_GPT4O,))),
    ("granite-embed-multi-97m", Split((_GPT4O,), whole_words=True)),
    ("tiny_aya cohere2moe", Split((r"\d{1,3}(?=(?:\d{3})*\b)", _GPT4O))),
    ("tekken", Split((_TEKKEN,), whole_words=True, add_bos=True)),
    ("kimi-k2", Split((_KIMI,))),
    ("youtu", Split((_YOUTU_SCRIPTS, rf"{_CASED}|\p{{N}}|{_CASED_BLANKS}"), whole_words=True)),
    ("deepseek-llm", Split((
        r"[\r\n]", _DEEPSEEK_LETTERS, r"\s?[!-/:-~！-／：-～‘-‟　-。]+", r"\s+$", r"[一-龥ࠀ-一가-퟿]+", r"\p{N}+"))),
    ("deepseek-coder", Split((r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", r"[一-龥ࠀ-一가-퟿]+", r"\p{N}"))),
    ("deepseek-v3 hunyuan-dense joyai-llm hy_v4", Split((r"\p{N}{1,3}", _CJK_AND_KANA, _DEEPSEEK3_WORDS))),
    ("spark2_5", Split((
        r"\p{N}{1,3}", _CJK_AND_KANA,
        rf"{_ASCII_SIGN_WORD}|{_MARKED_WORD}| ?[\p{{P}}\p{{S}}]+|[\r\n]|\s+(?!\S)|\s+", r"\p{N}"))),
    ("afmoe", Split((r"\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))", _SOUTH_EAST_ASIAN, _DEEPSEEK3_WORDS))),
    ("superbpe", Split((r"\p{N}+", r"(?=(\d{3})+(?!\d))"))),
    ("bloom poro-chat gpt3-finnish", Split((_BLOOM,))),
    ("viking", Split((_BLOOM, r"\p{N}"))),
    ("chameleon", Split((
        r"<sentinel:[0-9]+>", r"(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z", r"([\t\n]|    |  )", r"\p{N}",
        r"[\p{P}!-/:-@\[-`{-~]", _GPT2), add_bos=True)),
    ("gemma4 granite-embed-multi-311m", Split((_LINES,), add_bos=True, escapes_spaces=True)),
    ("sarvam-moe", Split((_LINES,), escapes_spaces=True)),
)  # fmt: skip

SPLITS = {name: split for names, split in _GROUPS for name in names.split()}


def split_named(name: str) -> Split:
    """The pre-tokenizer of this name.

    Raises:
        ModelLoadError: Octavo does not know it; the message names the nearest that it knows.
    """
    split = SPLITS.get(name)
    if split is None:
        nearest = difflib.get_close_matches(name, SPLITS, n=3, cutoff=0) or sorted(SPLITS)[:3]
        raise ModelLoadError(
            f"Octavo does not know how this model splits text (pre-tokenizer {name!r}); the nearest it knows are "
            f"{', '.join(nearest)}. A newer Octavo may, or the same model from a folder with a tokenizer.json."
        )
    return split
