"""The colours of Octavo, light and dark, as data. Knows no Qt."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Palette:
    """Colours as #RRGGBB.

    Attributes:
        background: behind lists and panels; paper: behind what is read; raised: controls and fields.
        ink: text; muted: what is said beside it.
        accent: actions; rubric: what happens right now, and danger.
        selection: chosen rows and the user's own words.
        string, number, comment: of code.
    """

    name: str
    background: str
    paper: str
    raised: str
    ink: str
    muted: str
    line: str
    accent: str
    on_accent: str
    accent_hover: str
    rubric: str
    selection: str
    hover: str
    string: str
    number: str
    ready: str


LIGHT = Palette(
    name="light",
    background="#F4F2EC",
    paper="#FCFBF8",
    raised="#FFFFFF",
    ink="#22252A",
    muted="#636460",
    line="#E2DED4",
    accent="#2F5D8C",
    on_accent="#FFFFFF",
    accent_hover="#284F78",
    rubric="#B5432B",
    selection="#E3EAF1",
    hover="#ECE9E0",
    string="#3C6E47",
    number="#7A4B8C",
    ready="#009E73",
)
DARK = Palette(
    name="dark",
    background="#1B1C1E",
    paper="#232427",
    raised="#2B2D31",
    ink="#E8E6E1",
    muted="#A6A6A2",
    line="#36383D",
    accent="#7FA9D4",
    on_accent="#1B1C1E",
    accent_hover="#94B8DC",
    rubric="#E2795F",
    selection="#2F3A47",
    hover="#27292C",
    string="#93C49B",
    number="#C9A0DC",
    ready="#2BB98D",
)

# Okabe and Ito's colours, told apart with every kind of colour vision; one for each owner, everywhere.
OWNERS = ("#0072B2", "#009E73", "#E69F00", "#CC79A7", "#D55E00", "#56B4E9")


def owner_colour(number: int) -> str:
    """The colour of the owner with this number."""
    return OWNERS[number % len(OWNERS)]


def contrast(first: str, second: str) -> float:
    """The contrast ratio of two colours, 1 to 21 (WCAG 2.2, relative luminance)."""
    lighter, darker = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    channels = [int(colour[index : index + 2], 16) / 255 for index in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
