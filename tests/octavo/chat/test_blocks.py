"""Markdown as blocks: growing text ends like whole text, HTML stays text, nothing undecided is shown."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.chat.blocks import Code, LiveBlocks, Prose, parse, settled

SAMPLE = """# Title

A paragraph with **bold** and `code`.
Second line.

- one
- two

  more of two
- three

1. first
2. second

> quoted

```python
def f():
    return 1

x = 2
```

| a | b |
|---|---|
| 1 | 2 |

    indented code

- [x] done
- [ ] open

The end.
"""


def joined(blocks: tuple[object, ...]) -> list[object]:
    """The blocks with neighbouring prose joined, as the window shows them."""
    result: list[object] = []
    for block in blocks:
        if isinstance(block, Prose) and result and isinstance(result[-1], Prose):
            result[-1] = Prose(result[-1].html + block.html)
        else:
            result.append(block)
    return result


def test_kinds_of_blocks() -> None:
    blocks = parse(SAMPLE)
    codes = [block for block in blocks if isinstance(block, Code)]
    assert codes == [Code("python", "def f():\n    return 1\n\nx = 2"), Code("", "indented code")]
    html = "".join(block.html for block in blocks if isinstance(block, Prose))
    for part in ("<h1>Title</h1>", "<strong>bold</strong>", "<table>", "<blockquote>", "<ol>", "☑ done", "☐ open"):
        assert part in html


@given(st.lists(st.integers(0, len(SAMPLE)), max_size=30))
def test_growing_text_ends_like_the_whole(cuts: list[int]) -> None:
    live = LiveBlocks()
    edges = [0, *sorted(cuts), len(SAMPLE)]
    for start, stop in itertools.pairwise(edges):
        live.append(SAMPLE[start:stop])
        assert joined(live.blocks) == joined(parse(SAMPLE[:stop]))


@pytest.mark.parametrize(
    "hostile", ["<script>alert(1)</script>", "<img src=x onerror=y>", "<b>bold</b>", '<a href="javascript:x">y</a>']
)
def test_html_is_text(hostile: str) -> None:
    html = "".join(block.html for block in parse(f"Before {hostile} after") if isinstance(block, Prose))
    assert "&lt;" in html
    for tag in ("<script", "<img", "<b>", "<a "):
        assert tag not in html


def test_cells_keep_their_alignment_without_a_style() -> None:
    (block,) = parse("| a | b |\n|---|--:|\n| 1 | 2 |")
    assert isinstance(block, Prose)
    assert '<td align="left">1</td>' in block.html
    assert '<td align="right">2</td>' in block.html
    assert "style" not in block.html


def test_links_and_pictures() -> None:
    (block,) = parse("[bad](javascript:alert(1)) [good](https://example.org) ![a cat](https://example.org/cat.png)")
    assert isinstance(block, Prose)
    assert 'href="javascript' not in block.html
    assert '<a href="https://example.org">good</a>' in block.html
    assert '<a href="https://example.org/cat.png">a cat</a>' in block.html
    assert "<img" not in block.html


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Text\n``", "Text"),
        ("Text\n```py", "Text"),
        ("Text\n```py\n", "Text\n```py\n"),
        ("```py\nx = 1\n``", "```py\nx = 1"),
        ("Title\n=", "Title"),
        ("Cells\n| a | b |\n|--", "Cells\n| a | b |"),
        ("plain", "plain"),
        ("a `code", "a `code"),
    ],
)
def test_a_line_that_is_not_decided_is_held_back(text: str, shown: str) -> None:
    assert settled(text) == shown
