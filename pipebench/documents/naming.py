"""What documents are called in sentences, and which commands take them."""

from typing import NamedTuple


class Naming(NamedTuple):
    """words: with its article, where it has one. commands: those of `pipebench` that take a file of that kind."""

    words: str
    commands: tuple[str, ...] = ("show",)


NAMINGS: dict[str, Naming] = {
    "graph": Naming("a graph"),
    "profile": Naming("a profile", ("show", "convert", "compare --profile")),
    "cluster": Naming("a cluster", ("show", "compare --cluster")),
    "problem": Naming("a problem"),
    "plan": Naming("a plan", ("show", "validate", "export", "execute", "certify", "diff")),
    "bare-plan": Naming("a plan without its problem", ("show", "diff")),
    "result": Naming("the result of a program", ("show", "diff")),
    "schedule": Naming("a schedule"),
    "trace": Naming("a trace", ("show", "show PLAN --trace")),
    "verdict": Naming("a verdict"),
    "rows": Naming("rows", ("show", "report", "diff")),
}
"""By kind of document."""


def in_words(kind: str) -> str:
    """A kind in a sentence, also one that is no document's: a store, a history."""
    return NAMINGS[kind].words if kind in NAMINGS else f"a {kind}"


def taken_by(kind: str) -> str:
    """A hint: the commands that take a file of that kind of document."""
    return f"for such a file: pipebench {' | '.join(NAMINGS[kind].commands)}"
