"""How the elements of prose look inside rich text."""

from __future__ import annotations

from octavo.ui.theme import Theme


def prose_style(theme: Theme) -> str:
    """The style sheet of a document. Rich text knows a small part of CSS only."""
    colours, body, code = theme.palette, theme.size("body"), theme.size("control")
    mono = theme.code_font().family()
    return f"""
    body, p, li, td, th {{ color: {colours.ink}; font-size: {body}px; line-height: 150%; }}
    p {{ margin: 0 0 10px 0; }}
    ul, ol {{ margin: 0 0 10px 0; }}
    li {{ margin: 0 0 2px 0; }}
    h1 {{ font-size: {round(body * 1.45)}px; font-weight: 600; margin: 12px 0 8px 0; }}
    h2 {{ font-size: {round(body * 1.25)}px; font-weight: 600; margin: 12px 0 6px 0; }}
    h3, h4, h5, h6 {{ font-size: {round(body * 1.1)}px; font-weight: 600; margin: 10px 0 6px 0; }}
    a {{ color: {colours.accent}; text-decoration: underline; }}
    code {{ font-family: '{mono}'; font-size: {code}px; background-color: {colours.hover}; }}
    pre {{ font-family: '{mono}'; font-size: {code}px; margin: 0; }}
    blockquote {{ color: {colours.muted}; margin: 0 0 10px 14px; }}
    blockquote p {{ color: {colours.muted}; }}
    table {{ border-collapse: collapse; border-color: {colours.line}; margin: 4px 0 10px 0; }}
    th {{ font-weight: 600; padding: 4px 10px; border: 1px solid {colours.line}; }}
    td {{ padding: 4px 10px; border: 1px solid {colours.line}; }}
    hr {{ background-color: {colours.line}; height: 1px; }}
    """
