"""Text can be read on every surface that it stands on, in the light and in the dark (WCAG 2.2, AA: 4.5 to 1)."""

import pytest

from octavo.ui.palette import DARK, LIGHT, Palette, contrast

PAIRS = [
    *((text, surface) for text in ("ink", "muted") for surface in ("background", "paper", "raised", "hover")),
    ("ink", "selection"),
    ("muted", "selection"),
    ("on_accent", "accent"),
    ("on_accent", "accent_hover"),
    *(("accent", surface) for surface in ("paper", "raised")),
    *((kind, "raised") for kind in ("string", "number", "rubric", "muted")),
]


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=lambda palette: palette.name)
@pytest.mark.parametrize(("text", "surface"), PAIRS)
def test_contrast_of_text(palette: Palette, text: str, surface: str) -> None:
    ratio = contrast(getattr(palette, text), getattr(palette, surface))
    assert ratio >= 4.5, f"{text} on {surface} is {ratio:.2f} to 1"


def test_contrast_is_that_of_the_standard() -> None:
    assert contrast("#000000", "#FFFFFF") == pytest.approx(21)
    assert contrast("#777777", "#FFFFFF") == pytest.approx(4.48, abs=0.01)
