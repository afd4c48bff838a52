"""What problems are called where several stand together: short, and told apart."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from pipebench.domain.row import Row

LONGEST = 48
"""Letters of a subject that stays as it is; of a longer one the options are left out."""
_SUBJECT = re.compile(
    r"(?P<name>[^\[\]]+?)(?: of (?P<model>[^\[\] ]+))?\[(?P<options>[^\[\]]*)\](?P<rest>[^\[\]]*)"
)


class _Parts(NamedTuple):
    """Of `name of model[options]rest`; model is empty where a subject is `name[options]rest`."""

    name: str
    model: str
    options: tuple[str, ...]
    rest: str


class ProblemNames:
    """The names of the problems of some rows.

    A language model has a dozen options. Where its name with them is longer than LONGEST, the short name has only
    the options that tell it from others of these rows.
    """

    def __init__(self, rows: Iterable[Row]) -> None:
        alike: dict[tuple[str, str], list[_Parts]] = {}
        parts: dict[str, _Parts] = {}
        for text in dict.fromkeys(row.subject for row in rows):
            if (found := _parts(text)) is not None:
                parts[text] = found
                alike.setdefault((found.name, found.rest), []).append(found)
        self._parts = parts
        self._short = {text: _told_apart(each, alike[each.name, each.rest]) for text, each in parts.items()}

    def short(self, row: Row) -> str:
        """What is planned, in a word or two."""
        return self._short.get(row.subject, row.subject)

    def problem(self, row: Row) -> str:
        """What is planned, on what."""
        return f"{self.short(row)} on {row.place}, mini-batch {row.mini_batch}"

    def whole(self, row: Row) -> str:
        """The model with all its options, to be wrapped between them; empty where the short name has them all."""
        parts = self._parts.get(row.subject)
        if parts is None:
            return ""
        named = f"{parts.name} is " if parts.model else ""
        return f"{named}{parts.model or parts.name}[{', '.join(parts.options)}]"


def short_subject(text: str) -> str:
    """A subject without its options, where they are long."""
    parts = _parts(text)
    return text if parts is None else parts.name + parts.rest


def _parts(text: str) -> _Parts | None:
    found = _SUBJECT.fullmatch(text) if len(text) > LONGEST else None
    if found is None:
        return None
    return _Parts(found["name"], found["model"] or "", tuple(found["options"].split(",")), found["rest"])


def _told_apart(parts: _Parts, alike: list[_Parts]) -> str:
    """The name with the options that others of this name do not all have."""
    shared = set(parts.options).intersection(*(each.options for each in alike))
    own = [option for option in parts.options if option not in shared]
    options = f"[{','.join(own)}]" if own else ""
    return f"{parts.name}{options}{parts.rest}"
