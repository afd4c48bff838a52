"""Text for terminals, pages and pictures: what files and plugins hold may have characters that these obey."""

import re
from html import escape

CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
"""Controls of both sets but tab and newline, marks that turn the direction of writing, what XML forbids, and
halves of characters, which stand for the bytes of a file name that is not UTF-8."""
PICTURES = 0x2400
"""Where Unicode has a picture of each of the first 32 characters."""
DELETE = "\x7f"


def printable(text: str) -> str:
    """The text with a visible sign for each character that a terminal would obey; as long as it was."""
    return CONTROL.sub(_picture, text)


def markup(text: str, quote: bool = True) -> str:
    """The text as it stands between tags of HTML or SVG; quote: or between quotes."""
    return escape(printable(text), quote)


def one_line(text: str) -> str:
    """One line that can be written: a stranger's message may hold anything, half characters too."""
    return " ".join(text.encode(errors="replace").decode().split())


def in_unicode(path: str) -> str:
    """A path as text that every document holds: a byte that is not UTF-8 is written as `\\xe8`."""
    return path.encode(errors="surrogateescape").decode(errors="backslashreplace")


OPENS_A_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def spreadsheet_text(text: str) -> str:
    """A cell of a table: what a spreadsheet would run gets a quote in front."""
    return printable(f"'{text}" if text.startswith(OPENS_A_FORMULA) else text)


def printable_json(text: str) -> str:
    """JSON with such characters escaped, so that it means what it meant. Only strings of JSON can hold them."""
    return CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _picture(found: re.Match[str]) -> str:
    character = found[0]
    if character == DELETE:
        return "\u2421"
    return chr(PICTURES + ord(character)) if ord(character) < 32 else "\ufffd"
