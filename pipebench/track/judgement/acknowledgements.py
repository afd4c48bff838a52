"""Acknowledged changes: a file that is committed, with a reason for each."""

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

from msgspec import Meta
from msgspec.structs import replace

from pipebench.domain.errors import PipebenchError, nearest
from pipebench.domain.value import Value, require
from pipebench.formats.files import read_file, write_file
from pipebench.formats.typed_text import parse_toml
from pipebench.track.judgement.events import Event

FILE = "acknowledged.toml"
HEAD = "# Changes that are meant to be: `pipebench track ack EVENT --reason TEXT` adds one.\n"


class Acknowledgement(Value, frozen=True, kw_only=True):
    """One change. event: its identity; about: what it was, for readers of the file."""

    event: Annotated[str, Meta(min_length=1)]
    reason: str
    about: str = ""
    at: str = ""

    def __post_init__(self) -> None:
        require(self.reason.strip() != "", f"the acknowledgement of {self.event!r} has no reason")


class Acknowledgements(Value, frozen=True, kw_only=True):
    """The file."""

    acknowledged: tuple[Acknowledgement, ...] = ()


def read_acknowledged(file: Path, named: bool = False) -> tuple[Acknowledgement, ...]:
    """The acknowledgements of a file. named: by the user; any other one may be absent, and acknowledges nothing.

    Raises PipebenchError when it is wrong.
    """
    if not os.path.exists(file):
        if named:
            beside = [other.name for other in file.parent.glob("*.toml")]
            how = "`pipebench track ack` writes it; an empty one acknowledges nothing"
            raise PipebenchError(f"there is no file {str(file)!r}", nearest(file.name, beside) if beside else how)
        return ()
    return parse_toml(read_file(file), Acknowledgements, str(file)).acknowledged


def acknowledge(file: Path, added: Sequence[Acknowledgement]) -> None:
    """Add to the file; what stands there stays as it is. Raises PipebenchError."""
    read_acknowledged(file)
    text = read_file(file).decode() if os.path.exists(file) else HEAD
    for each in added:
        lines = [
            f"{name} = {_toml_string(value)}" for name in each.__struct_fields__ if (value := getattr(each, name))
        ]
        text = text.rstrip("\n") + "\n\n" + "\n".join(["[[acknowledged]]", *lines]) + "\n"
    data = text.encode()
    parse_toml(data, Acknowledgements, str(file))
    write_file(file, data)


def with_acknowledgements(events: Iterable[Event], known: Iterable[Acknowledgement]) -> list[Event]:
    """The events, those that are open and acknowledged with their reason."""
    reasons = {each.event: each.reason for each in known}
    return [
        replace(event, state="acknowledged", reason=reasons[event.identity])
        if event.state == "open" and event.identity in reasons
        else event
        for event in events
    ]


def refusal(event: Event, known: Iterable[Acknowledgement]) -> str:
    """Why there is nothing to acknowledge of an event that is not open."""
    found = next((each for each in known if each.event == event.identity), None)
    if found is not None:
        since = f"since {found.at[:10]}: " if found.at else ""
        return f"is acknowledged already ({since}{found.reason})"
    return f"needs no acknowledgement: {'it is over' if event.state == 'over' else 'nothing became worse by it'}"


def strangers(events: Iterable[Event], known: Iterable[Acknowledgement]) -> list[str]:
    """Acknowledgements of events that the history does not have, one line each."""
    there = {event.identity for event in events}
    return [
        f"{FILE} names an event that the history does not have: {e.event}" for e in known if e.event not in there
    ]


def _toml_string(text: str) -> str:
    """A TOML basic string: JSON's escapes are TOML's, and characters that TOML forbids are escaped by both."""
    if "\x7f" in text:
        raise PipebenchError("a reason holds a control character", "write it in plain text")
    return json.dumps(text, ensure_ascii=False)
