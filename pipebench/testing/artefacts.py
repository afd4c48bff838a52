"""Checks of artefacts: what they say before anything has run."""

from collections.abc import Callable, Iterator
from functools import partial

from msgspec.structs import replace

from pipebench.hooks.manager import Host
from pipebench.testing.asked import Asked, broken
from pipebench.testing.calls import Call
from pipebench.testing.subject import Subject
from pipebench.testing.verdicts import first_failure


def artefact_checks(host: Host, subject: Subject) -> Iterator[tuple[str, Callable[[], None]]]:
    """Claims, cells, and a judge that gives one finding for each claim even without results."""
    del host
    call = Call(name="artefact", slot="artefacts", component=subject.label)
    asked = Asked([call], lambda given, name: replace(given, name=name))
    yield "judge", partial(_judged, asked)
    yield "silence", asked.silence
    yield "state", asked.state


def _judged(asked: Asked) -> None:
    """Claims, something to run, and one finding for each claim even where nothing has run."""
    answer = asked.first["artefact"]
    first_failure([broken(answer), *answer.flaws])
