"""Files of lines made wrong: TOML, tables of cells, program text, and words of a command line."""

import random
import re

from tests.fuzz.mutate_json import NUMBERS, TEXTS

DEEPEST_KEY = 100_000
"""Parts of the deepest dotted key of TOML that is tried."""
MOST_STEPS = 3
TOML_VALUES = (
    "''",
    '"A"',
    "[]",
    "{}",
    "[[]]",
    "true",
    "nan",
    "-inf",
    "0",
    "-1",
    "1.5",
    "1e308",
    "9223372036854775807",
    "9223372036854775808",
    "9" * 400,
    "1979-05-27T07:32:00Z",
    "['a', 1]",
    '"\\u0000"',
    f"'{'A' * 2000}'",
    "'٣'",
    "1_0",
    "0x10",
    "[1, 2, 3]",
    "{ a = 1 }",
)
_FIGURE = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_CELL = re.compile(r"[^,;|\t \n=:()\[\]{}\"'-]+")


def mutate_toml(data: bytes, draw: random.Random) -> bytes:
    """The file after one to MOST_STEPS changes of its lines."""
    lines = data.decode(errors="replace").split("\n")
    for _ in range(draw.randint(1, MOST_STEPS)):
        at = draw.randrange(len(lines))
        key, equals, _value = lines[at].partition("=")
        kind = draw.randrange(8)
        if kind < 4 and equals:
            lines[at] = f"{key}= {draw.choice(TOML_VALUES)}"
        elif kind == 4:
            lines[at : at + 1] = [lines[at]] * draw.choice((0, 2))
        elif kind == 5:
            depth = draw.choice((2, DEEPEST_KEY))
            lines.insert(at, f"{'.'.join('k' * depth)} = {draw.choice(TOML_VALUES)}")
        elif kind == 6:
            lines.insert(at, draw.choice(("[x]", "[[x]]", "x = 1", '"" = 2', "[", "= 3", "[[workloads]]")))
        else:
            draw.shuffle(lines)
        lines = lines or [""]
    return "\n".join(lines).encode()


def mutate_table(data: bytes, draw: random.Random) -> bytes:
    """A file of rows after one to MOST_STEPS changes: of a figure, a cell, a row, or their order."""
    lines = data.decode(errors="replace").split("\n")
    for _ in range(draw.randint(1, MOST_STEPS)):
        at = draw.randrange(len(lines))
        kind = draw.randrange(8)
        if kind < 3:
            lines[at] = _exchange(lines[at], _FIGURE, NUMBERS, draw)
        elif kind < 5:
            lines[at] = _exchange(lines[at], _CELL, (*NUMBERS, *TEXTS), draw)
        elif kind == 5:
            lines[at : at + 1] = [lines[at]] * draw.choice((0, 2))
        elif kind == 6:
            draw.shuffle(lines)
        else:
            cells = lines[at].split(",")
            draw.shuffle(cells)
            lines[at] = ",".join(cells[: draw.randint(0, len(cells))] + draw.choices(cells))
        lines = lines or [""]
    return "\n".join(lines).encode(errors="surrogatepass")


def _exchange(line: str, pattern: re.Pattern[str], values: tuple[str, ...], draw: random.Random) -> str:
    found = list(pattern.finditer(line))
    if not found:
        return line + draw.choice(values)
    place = draw.choice(found)
    return line[: place.start()] + draw.choice(values) + line[place.end() :]


def mutate_words(data: bytes, draw: random.Random) -> bytes:
    """Words of a command line with letters put in, taken out or exchanged for odd ones."""
    text = data.decode()
    signs = "[]=,:'\"\\ \0\n٣-.eE_%{}()/*" + text
    for _ in range(draw.randint(1, 4)):
        at = draw.randint(0, len(text))
        kind = draw.randrange(4)
        if kind == 0:
            text = text[:at] + draw.choice(signs) + text[at:]
        elif kind == 1:
            text = text[:at] + text[at + 1 :]
        elif kind == 2:
            text = text[:at] + draw.choice((*NUMBERS, *TEXTS)) + text[at:]
        else:
            text = _exchange(text, _FIGURE, NUMBERS, draw)
    return text.encode(errors="surrogatepass")
