"""The colours of pictures, each for a light page and for a dark one, and the style that swaps them."""

import re

INK, PAPER, PALE, STROKE, OUTLINE, CARD = "#222222", "#ffffff", "#d9d9d9", "#555555", "#444444", "#f2f6fa"
"""Of words and axes, the page, grids, edges of graphs, the outline of bars, the boxes of graphs."""
CURVES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#000000", "#e69f00", "#56b4e9", "#8c6d31")
"""Okabe and Ito's, told apart with any kind of colour vision; each has a marker of its own besides."""
TASKS = {"F": "#9ecae1", "B": "#fdbe85", "I": "#fdd0a2", "W": "#c7e9c0", "R": "#bcbddc"}
"""By the kind of a task. Words stand on these."""
TRANSFERS = {"f": "#4292c6", "b": "#f16913"}
WIDE_TRANSFERS = {"f": "#deebf7", "b": "#feedde"}
"""Where words stand on them."""
MERGED = "#bdbdbd"
"""Of a bar that stands for several."""

DARK = {
    INK: "#e8e8e8",
    PAPER: "#17191c",
    PALE: "#3c4046",
    STROKE: "#a8a8a8",
    OUTLINE: "#0b0c0e",
    CARD: "#22282f",
    "#000000": "#ffffff",
    "#9ecae1": "#1f5a80",
    "#fdbe85": "#8a4a12",
    "#fdd0a2": "#6b4a2e",
    "#c7e9c0": "#2c6134",
    "#bcbddc": "#55518c",
    "#deebf7": "#24415a",
    "#feedde": "#573a24",
    "#bdbdbd": "#5c5c5c",
}
"""What a colour becomes on a dark page; one that is not here suits both."""

MARK = "pipebench"
"""The class of every picture, so that its style touches nothing else on a page."""
_USED = re.compile(r'\b(fill|stroke)="(#[0-9a-f]+)"')


def style_of(picture: str) -> str:
    """The style element for these SVG elements: paper, and on a dark page the other colour of each that occurs."""
    used = sorted({found for found in _USED.findall(picture) if found[1] in DARK})
    swapped = "".join(f'.{MARK} [{name}="{light}"]{{{name}:{DARK[light]}}}' for name, light in used)
    dark = f".{MARK}{{background:{DARK[PAPER]}}}{swapped}"
    return f"<style>.{MARK}{{background:{PAPER}}}@media (prefers-color-scheme: dark){{{dark}}}</style>"
