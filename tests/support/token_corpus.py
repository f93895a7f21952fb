"""Texts that tokenizers stumble over, and vocabularies made from the starter's for kinds of tokenizer that it is not.

Shared by the tests and by the script that records another program's token ids. Knows no tokenizer of ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

TEXTS = (
    "",
    " ",
    "  ",
    "a",
    " a",
    "a ",
    "Hello, world!",
    ("The quick brown fox jumps over 1234567 lazy dogs; it's 3.14159 o'clock, isn't it? I'LL say WE'VE, they'Re."),
    (
        "def f(x: int) -> int:\n    # a comment\n\tif x <= 1:\n\t\treturn 1"
        "\n    return x * f(x - 1)\n\n\nprint(f'{f(10):>8}')\n"
    ),
    ('#include <stdio.h>\nint main(void) { printf("%d\\n", 0x1F); return 0; } // end\r\n\r\n'),
    '<div class="a">&nbsp;</div>\n<!-- x --></s><s><unk>',
    '{"key": [1, 2.5e-10, null], "k2": "v\\u00e9"}',
    "日本語のテキストと、中国語的文字。한국어 문장입니다 ㄱㄴㄷ。「かな」カナ…",
    "我能吞下玻璃而不伤身体。１２３４ 〇一二三",
    "ประเทศไทย ภาษา ພາສາລາວ ភាសាខ្មែរ မြန်မာ",
    "नमस्ते दुनिया, हिन्दी में १२३४५६. বাংলা ভাষা தமிழ்",
    "مرحبا بالعالم، كيف حالك؟ ١٢٣٤٥۔ שָׁלוֹם עוֹלָם",
    "Ελληνικά Привет, МИР! ПРИВЕТ-мир Ћирилица ǅungla ΑΒΓ Σίσυφος",
    "🎉🎉 👩\u200d👩\u200d👧\u200d👦 👍🏽 🇩🇪🇫🇷 ❤️ ✨🤖",
    (
        "e\u0301 a\u0308\u0323 n\u0303 Z\u0351\u036b\u0343\u036a\u0302\u036b\u033d\u034f\u0334\u0319\u0324"
        "\u031e\u0349\u035a\u032f\u031e\u0320\u034dA\u036b\u0357\u0334\u0362\u0335\u031c\u0330\u0354L"
    ),
    "a  b   c    d     e      f       g        h",
    "\n",
    "\n\n",
    "\n\n\n\n  \n \t\n",
    "\t\t\tx\t y",
    "trailing   ",
    "   leading",
    "a\r\nb\rc\n\rd",
    " \n \n a",
    "\xa0nbsp\u3000ideographic\u2003em\u200bzero\u2028line\u2029par\x85next",
    "\x00\x01\x02 \x07bell \x1b[31mred\x1b[0m \x7f",
    ("<|endoftext|><|im_start|>user\n<|im_end|> <|im_start|> <|im_end"),
    "<0x0A><0x41> ▁▁ under▁score ▁",
    "xx<tool>yy <tool> z<tool>",
    "</tool_call>",
    "1",
    "12",
    "123",
    "1234",
    "12345",
    "123456",
    "1234567890123",
    "1,234,567.89",
    "½ ² ③ Ⅳ ੩",
    "$100 + €20 = ~120% ^_^ `code` |pipe| a|b <x>",
    ("CamelCaseHTTPServer snake_case kebab-case SCREAMING iPhone McDonald"),
    "don't DON'T 'tis 'Tis ''s 's 'S 're 'll x'd",
    ("https://example.com/a?b=c&d=%20#frag user@mail.org C:\\dir\\file"),
    "!!! ??? ... --- === ###",
    "«quotes» “curly” ‘single’ „low“ – — …",
    "ﬁ ﬂ ℌ ＡＢＣ ａｂｃ ｶﾅ ㍿ Å Å",
    "a" * 100,
    "ab" * 60,
    " " * 70,
    "=-" * 40,
    "🧑🏿\u200d💻 𐐀𐐨 𠀀𪜀 � \ufdd0",
    "IMGIMGABCZ <sentinel:12> IMGIMG",
    "/path//to/\n/x/\r\n",
    "(parens)(more) [x](y) a.b.c,d;e",
    "x\u0300\u0301y 1\u0308 .\u0301",
    "ſ 'ſ K 'K",
    "user\nHi<|im_end|>\n<|im_start|>assistant\n",
    "tab\there",
)

_SPACE = "▁"
_PIECES = 9_000
_PRINTABLE = [*range(33, 127), *range(161, 173), *range(174, 256)]
_OTHERS = [byte for byte in range(256) if byte not in _PRINTABLE]
_BYTE_OF = {chr(byte): byte for byte in _PRINTABLE} | {chr(256 + place): byte for place, byte in enumerate(_OTHERS)}


def sentencepiece_metadata(starter: Mapping[str, Any], *, add_space_prefix: bool) -> dict[str, Any]:
    """A SentencePiece vocabulary: the starter's first tokens that are whole characters, scored by their place."""
    pieces = _pieces(starter)
    named = [
        "<unk>",
        "<s>",
        "</s>",
        *(f"<0x{byte:02X}>" for byte in range(256)),
        "<tool>",
        "<|im_start|>",
        "<|im_end|>",
    ]
    kinds = [2, 3, 3, *[6] * 256, 4, 3, 3]
    return {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.pre": "default",
        "tokenizer.ggml.tokens": [*named, *pieces],
        "tokenizer.ggml.token_type": [*kinds, *[1] * len(pieces)],
        "tokenizer.ggml.scores": [*[0.0] * len(named), *(-float(index) for index in range(len(pieces)))],
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 0,
        "tokenizer.ggml.add_space_prefix": add_space_prefix,
    }


def unigram_metadata(starter: Mapping[str, Any]) -> dict[str, Any]:
    """The same pieces for a unigram model, without bytes: earlier ones are likelier."""
    made = sentencepiece_metadata(starter, add_space_prefix=True)
    kinds = [0 if kind == 6 else kind for kind in made["tokenizer.ggml.token_type"]]
    # Whole in single precision, as the file keeps them.
    scores = [-8.0 - index / 1024 if kind == 1 else 0.0 for index, kind in enumerate(kinds)]
    return made | {
        "tokenizer.ggml.model": "t5",
        "tokenizer.ggml.token_type": kinds,
        "tokenizer.ggml.scores": scores,
    }


def spaced_bpe_metadata(starter: Mapping[str, Any]) -> dict[str, Any]:
    """The same pieces with merges over plain text, as in Gemma 4's files."""
    made = sentencepiece_metadata(starter, add_space_prefix=False)
    known = set(made["tokenizer.ggml.tokens"])
    merges = []
    for merge in starter["tokenizer.ggml.merges"]:
        left, right = (_plain(part) for part in merge.split(" ", 1))
        if left is not None and right is not None and {left, right, left + right} <= known:
            merges.append(f"{left} {right}")
    return made | {"tokenizer.ggml.model": "gemma4", "tokenizer.ggml.merges": merges}


def _pieces(starter: Mapping[str, Any]) -> list[str]:
    kinds = list(starter["tokenizer.ggml.token_type"])
    texts = (_plain(token) for token, kind in zip(starter["tokenizer.ggml.tokens"], kinds, strict=True) if kind == 1)
    # llama.cpp ends a token at a NUL.
    return list(dict.fromkeys(text for text in texts if text is not None and "\0" not in text))[:_PIECES]


def _plain(token: str) -> str | None:
    """A byte-level token as text with U+2581 for spaces; None where it is part of a character."""
    try:
        return bytes(_BYTE_OF[character] for character in token).decode().replace(" ", _SPACE)
    except (KeyError, UnicodeDecodeError):
        return None
