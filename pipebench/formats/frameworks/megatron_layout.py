"""Megatron-LM's --pipeline-model-parallel-layout: its grammar and its rules.

E embedding, t decoder layer, m layer of multi-token prediction, L loss with the head; `|` ends a stage, commas
mean nothing, `(...)*n` repeats a group and `x*n` one symbol. Stage k is virtual stage k // pp of rank k % pp.
Expansion is groups first, once, then symbols; so parentheses do not nest.
"""

import re
from collections.abc import Sequence
from itertools import groupby

from pipebench.domain.errors import PipebenchError

MOST_SYMBOLS = 100_000
_GROUP = re.compile(r"\(([^()]+)\)\*(\d{1,6})", re.ASCII)
_SYMBOL = re.compile(r"([EtmL|])\*(\d{1,6})", re.ASCII)
EXAMPLE = "such as Et*3|(tt|)*29,m|L"


def parse_layout(text: str) -> tuple[str, ...]:
    """The symbols of each stage. Raises PipebenchError: spaces, nesting, unknown symbols, too many of them."""
    if not text:
        raise PipebenchError("the layout is empty", EXAMPLE)
    if re.search(r"\s", text):
        joined = _short("".join(text.split()))
        raise PipebenchError(f"layout {_short(text)}: holds a space", f"Megatron takes none: {joined}")
    expanded = _expanded(_expanded(text.replace(",", ""), _GROUP), _SYMBOL)
    wrong = next((letter for letter in expanded if letter not in "EtmL|"), None)
    if wrong is not None:
        raise PipebenchError(f"layout {_short(text)}: {_why(wrong)}", EXAMPLE)
    return tuple(expanded.split("|"))


def check_layout(stages: Sequence[str], pipeline: int, layers: int, mtp_layers: int = 0) -> int:
    """The number of virtual stages of each rank. Raises PipebenchError for the first rule that is broken."""
    virtual, left = divmod(len(stages), pipeline)
    if left or not virtual:
        raise PipebenchError(
            f"the layout has {len(stages)} stages, which pipeline parallelism {pipeline} does not divide",
            f"use a multiple of {pipeline} stages, or one of pp {_divisors(len(stages))}",
        )
    flat = "".join(stages)
    for symbol, what, place, which in (("E", "embedding", 0, "first"), ("L", "loss", -1, "last")):
        if flat.count(symbol) != 1:
            raise PipebenchError(f"the layout has {flat.count(symbol)} {symbol} ({what}), not exactly one")
        if flat[place] != symbol:
            raise PipebenchError(f"the {which} symbol must be {symbol} ({what}), it is {flat[place]}")
    if flat.count("t") != layers:
        raise PipebenchError(
            f"the layout has {flat.count('t')} decoder layers, the model {layers}", "is it for another model?"
        )
    if flat.count("m") != mtp_layers:
        raise PipebenchError(f"the layout has {flat.count('m')} MTP layers (m), the model {mtp_layers}")
    _check_mtp(stages, flat, pipeline, virtual)
    return virtual


def _check_mtp(stages: Sequence[str], flat: str, pipeline: int, virtual: int) -> None:
    if "m" not in flat:
        return
    if "t" in flat[flat.index("m") :]:
        raise PipebenchError("a decoder layer (t) stands after an MTP layer (m)")
    holders = [position for position, stage in enumerate(stages) if "m" in stage]
    if len(holders) > 1:
        raise PipebenchError(f"MTP layers (m) are in stages {holders}, all must be in one")
    if holders[0] // pipeline != virtual - 1:
        raise PipebenchError(
            f"MTP layers (m) are in stage {holders[0]}, which is not the last of rank {holders[0] % pipeline}"
        )


def write_layout(stages: Sequence[str]) -> str:
    """The shortest of these forms: runs of a symbol as t*n, runs of equal stages as (…|)*n."""
    parts: list[str] = []
    body, last = list(stages[:-1]), _stage(stages[-1])
    for stage, run in groupby(body):
        count, text = len(list(run)), _stage(stage) + "|"
        parts.append(text * count if count < 3 else f"({text})*{count}")
    made = "".join(part + ("," if part[-1].isdigit() else "") for part in parts) + last
    assert parse_layout(made) == tuple(stages)
    return made


def _stage(symbols: str) -> str:
    parts = []
    for symbol, run in groupby(symbols):
        count = len(list(run))
        parts.append(symbol * count if count < 3 else f"{symbol}*{count}")
    return ",".join(parts) if any("*" in part for part in parts[:-1]) else "".join(parts)


def _expanded(text: str, pattern: "re.Pattern[str]") -> str:
    size = len(text) + sum(len(found[1]) * int(found[2]) for found in pattern.finditer(text))
    if size > MOST_SYMBOLS:
        raise PipebenchError(f"the layout stands for about {size} symbols, at most {MOST_SYMBOLS} are read")
    return pattern.sub(lambda found: found[1] * int(found[2]), text)


def _why(letter: str) -> str:
    if letter in "()":
        return "parentheses that nest, do not match or lack *n; write (…)*n, groups do not nest"
    if letter == "*" or letter.isdigit():
        return f"{letter!r} repeats nothing; write t*3 or (tt|)*3"
    return f"unknown symbol {letter!r}; E embedding, t layer, m MTP layer, L loss, all case-sensitive"


def _divisors(number: int) -> str:
    return ", ".join(str(each) for each in range(1, number + 1) if number % each == 0)


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
