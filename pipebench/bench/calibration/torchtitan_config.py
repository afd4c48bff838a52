"""The configuration that torchtitan prints into its log, where the job asks for it.

`Running with configs: {…}` as JSON of many lines since December 2025, before that as a dict of Python in one line;
`Running with args: {…}` until October 2025. Each line may carry a prefix, as torchrun's `[rank0]:`, and lines of
several ranks may be mixed.
"""

import ast
import json
import re
from collections.abc import Iterator
from typing import Any

from pipebench.documents.decoding import bounded_json
from pipebench.domain.errors import PipebenchError
from pipebench.domain.limits import LARGEST_CONFIG_BYTES

PRINTED = ("Running with configs: ", "Running with args: ")
"""What stands before it."""
MOST_PREFIXED = 16
"""How many times as long a configuration may be with prefixes and with the lines of other ranks."""
_PRINTED = re.compile("|".join(map(re.escape, PRINTED)))
_STARTS, _RANK = "[titan]", re.compile(r"\[[A-Za-z]+\d{1,8}\]:|^ *\d{1,8}: ")
"""How torchtitan's own part of a line starts, and the ranks that torchrun (`--tee`) and srun (`-l`) put before."""
_OF_THE_RUN = ("model", "model_spec", "training", "parallelism", "activation_checkpoint", "compile")
"""Parts that make another run."""


def printed_config(text: str, source: str) -> tuple[int, dict[str, Any]]:
    """The number of its first line, and the configuration; of several ranks' the first.

    Raises PipebenchError where there is none or it cannot be read, and where the last one is of another run.
    """
    places = list(_PRINTED.finditer(text))
    if not places:
        raise PipebenchError(
            f"{source}: the log has no configuration",
            "torchtitan prints it as `Running with configs:` where the job asks for it (print_config)",
        )
    line, (value, why) = _line(text, places[0]), _value(text, places[0], source)
    if why:
        raise PipebenchError(f"{source}: line {line}: its configuration is not JSON: {why}")
    last, unread = _value(text, places[-1], source)
    other = None if unread else next((part for part in _OF_THE_RUN if last.get(part) != value.get(part)), None)
    if other is not None:
        raise PipebenchError(
            f"{source}: line {_line(text, places[-1])}: another run starts, with another {other!r} in its "
            "configuration",
            "give each run a log of its own",
        )
    return line, value


def _line(text: str, place: re.Match[str]) -> int:
    return text.count("\n", 0, place.start()) + 1


def _value(text: str, place: re.Match[str], source: str) -> tuple[dict[str, Any], str]:
    """The configuration at its place, and why it cannot be read."""
    why = ""
    for body in _bodies(text, place.start(), place.end()):
        try:
            bounded_json(body.encode(), source)
            value = _decoded(body)
        except (json.JSONDecodeError, SyntaxError, RecursionError, MemoryError, ValueError) as error:
            why = why or str(error)
        else:
            return value if isinstance(value, dict) else {}, ""
    return {}, why


def _decoded(body: str) -> Any:
    """Raises JSONDecodeError where it is neither JSON nor a dict of Python."""
    try:
        return json.JSONDecoder().raw_decode(body)[0]
    except json.JSONDecodeError:
        if not body.startswith("{'"):
            raise
    return ast.literal_eval(body.split("\n", 1)[0].strip())


def _bodies(text: str, start: int, first: int) -> Iterator[str]:
    """What may be the configuration that starts there: as it stands, the lines with that line's prefix, and those
    with its like, as times in it differ; the rank stays.
    """
    begin = text.rfind("\n", 0, start) + 1
    rest = text[first : first + MOST_PREFIXED * LARGEST_CONFIG_BYTES]
    yield rest[:LARGEST_CONFIG_BYTES]
    prefix = text[begin:start].partition(_STARTS)[0]
    if not prefix or prefix == text[begin:start]:
        return
    like = "".join(
        re.escape(part) if _RANK.fullmatch(part) else re.sub(r"\d+", r"\\d{1,12}", re.escape(part))
        for part in re.split(rf"({_RANK.pattern})", prefix)
    )
    for pattern in (re.escape(prefix), like):
        own = re.compile(pattern)
        head, *lines = rest.split("\n")
        kept = [line[match.end() :] for line in lines if (match := own.match(line)) is not None]
        yield "\n".join([head, *kept])[:LARGEST_CONFIG_BYTES]
