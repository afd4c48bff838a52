"""Calls of a component in two processes, and what holds for every slot: same answers, silence, nothing left."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property

from pipebench.domain.value import digest
from pipebench.testing.calls import Answer, Call
from pipebench.testing.session import answers
from pipebench.testing.verdicts import first_failure

BROKEN = ("crashed", "hung", "died")


class Asked:
    """Calls and their answers, made when they are first looked at.

    The first call is made again at the end, and all are made in a second process in the same order.
    """

    def __init__(self, calls: Sequence[Call], again: Callable[[Call, str], Call]) -> None:
        self._calls, self._again = list(calls), again

    @cached_property
    def first(self) -> dict[str, Answer]:
        """Answers by the names of the calls; "again" for the first call made twice."""
        return answers([*self._calls, self._again(self._calls[0], "again")])

    @cached_property
    def second(self) -> dict[str, Answer]:
        """Answers of the other process."""
        return answers(self._calls)

    def everything(self) -> Iterator[Answer]:
        """All answers of both processes."""
        yield from self.first.values()
        yield from self.second.values()

    def determinism(self) -> None:
        """Two processes get the same."""

        def wrong() -> Iterator[str | None]:
            for name, other in self.second.items():
                if said(self.first[name]) != said(other):
                    yield f"{name}: two processes with the same seed get different results"

        first_failure(wrong())

    def state(self) -> None:
        """Earlier calls do not matter, and a call leaves everything as it was."""
        left_nothing(self.everything())
        first = self._calls[0].name
        fresh = said(self.first[first]) == said(self.second[first])
        changed = fresh and said(self.first[first]) != said(self.first["again"])
        first_failure([f"{first}: the answer changes after other calls in the same process"] if changed else [])

    def declared(self) -> None:
        """It declares what it calls: what it asks its context for is in `calls` of its descriptor."""
        called_as_declared(self.everything())

    def silence(self) -> None:
        """Nothing reaches standard output."""
        printed_nothing(self.everything())


def said(answer: Answer) -> str:
    """What an answer holds, times and processes apart."""
    reason = answer.reason if answer.ending != "returned" else ""
    return digest(
        (answer.ending, answer.result, answer.schedule, answer.trace, answer.profile, answer.graph, reason)
    )


def left_nothing(given: Iterable[Answer]) -> None:
    """Raise Failed for the first call that left something behind."""
    first_failure(f"{answer.name}: {'; '.join(answer.left)}" for answer in given if answer.left)


def printed_nothing(given: Iterable[Answer]) -> None:
    """Raise Failed for the first call that printed to standard output, which is the command's."""
    first_failure(
        f"{answer.name}: prints {answer.printed.strip()[:60]!r} to standard output; use context.report or stderr"
        for answer in given
        if answer.printed
    )


def called_as_declared(given: Iterable[Answer]) -> None:
    """Raise Failed for the first call that asked for a component that is not in `calls`."""
    first_failure(map(undeclared_call, given))


def undeclared_call(answer: Answer) -> str | None:
    """What a call asked for that the descriptor does not declare, and the remedy."""
    if not answer.undeclared:
        return None
    names = ", ".join(map(repr, answer.undeclared))
    return f"{answer.name}: it asks for {names}, which `calls` of its descriptor does not name"


def broken(answer: Answer) -> str | None:
    """Why an answer is neither a result nor an error that a user could act on."""
    return f"{answer.name}: {answer.ending}: {answer.reason}" if answer.ending in BROKEN else None
