"""The parent's side: calls of a component in two child processes, and what holds for every slot."""

import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import msgspec

from pipebench.bench.machine.memory_limit import SEARCH_MEMORY_BYTES
from pipebench.bench.searches.isolation.child import Errand
from pipebench.bench.searches.isolation.client import (
    child_environment,
    errand_folder,
    isolation,
)
from pipebench.bench.searches.isolation.conversation import ChildExit
from pipebench.bench.searches.isolation.wire import BrokenWire
from pipebench.domain.errors import PipebenchError
from pipebench.domain.value import digest
from pipebench.testing.calls import LONG_S, Answer, Call
from pipebench.testing.probe import SAMPLE, WORK, PackageFile
from pipebench.testing.verdicts import first_failure


def answers(calls: Sequence[Call]) -> dict[str, Answer]:
    """The answer to each call by its name. A call that ends its process costs only itself."""
    found: dict[str, Answer] = {}
    left = list(calls)
    while left:
        ended = _run(left)
        got = _decode_answers(ended)
        found |= {answer.name: answer for answer in got}
        left = left[len(got) :]
        if left:
            found[left[0].name] = _lost_answer(left[0], ended)
            left = left[1:]
    return found


@dataclass(frozen=True, slots=True)
class Session:
    """Calls of one process: their answers, up to the first that ended the process, and CPU seconds at its end.

    cpu_s: what the kernel says of the process and of all that descended from it.
    """

    answers: tuple[Answer, ...]
    cpu_s: float

    @property
    def hidden_cpu_s(self) -> float:
        """What was spent beside what the process itself has seen: by children nobody waited for, or afterwards."""
        return self.cpu_s - self.answers[-1].spent_s if self.answers else 0.0


def session(calls: Sequence[Call]) -> Session:
    """Make calls in one process of their own."""
    ended = _run(calls)
    return Session(tuple(_decode_answers(ended)), ended.cpu_s)


def _run(calls: Sequence[Call]) -> ChildExit:
    errand = Errand(
        work=WORK,
        given=msgspec.msgpack.encode(calls),
        folder=errand_folder(),
        environment=child_environment(("*",)),
        memory_bytes=SEARCH_MEMORY_BYTES,
        network=True,
    )
    return isolation().run(errand, sum(call.most_s for call in calls), owner=calls[0].owner)


def package_file(named: str) -> PackageFile:
    """A file of an installed package, "package:path"; or why there is none."""
    errand = Errand(
        work=SAMPLE,
        given=named.encode(),
        warm=False,
        environment=child_environment(),
        memory_bytes=SEARCH_MEMORY_BYTES,
    )
    ended = isolation().run(errand, LONG_S)
    if not ended.messages:
        return PackageFile(missing=f"its process ended with {_code(ended.code)}")
    return msgspec.msgpack.decode(ended.messages[0], type=PackageFile)


def _decode_answers(ended: ChildExit) -> list[Answer]:
    try:
        return [msgspec.msgpack.decode(payload, type=Answer) for payload in ended.messages]
    except (BrokenWire, msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
        raise PipebenchError(f"the process of the kit sent what is no answer: {error}") from None


def _lost_answer(call: Call, ended: ChildExit) -> Answer:
    """The answer to the call that its process did not survive."""
    if ended.stopped or ended.code == -signal.SIGALRM:
        return Answer(name=call.name, ending="hung", reason=f"no answer within {call.most_s:g} s")
    last = [line for line in ended.output.strip().splitlines() if line.strip()]
    how = f"its process ended with {_code(ended.code)}"
    return Answer(name=call.name, ending="died", reason=f"{how}: {last[-1][:200]}" if last else how)


def _code(code: int) -> str:
    known = -code in set(signal.Signals)
    return signal.Signals(-code).name if code < 0 and known else f"exit code {code}"


BROKEN = ("crashed", "hung", "died")


class RepeatedCalls:
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
                if answer_digest(self.first[name]) != answer_digest(other):
                    yield f"{name}: two processes with the same seed get different results"

        first_failure(wrong())

    def state(self) -> None:
        """Earlier calls do not matter, and a call leaves everything as it was."""
        left_nothing(self.everything())
        first = self._calls[0].name
        fresh = answer_digest(self.first[first]) == answer_digest(self.second[first])
        changed = fresh and answer_digest(self.first[first]) != answer_digest(self.first["again"])
        first_failure([f"{first}: the answer changes after other calls in the same process"] if changed else [])

    def call_declarations(self) -> None:
        """It declares what it calls: what it asks its context for is in `calls` of its descriptor."""
        called_as_declared(self.everything())

    def silence(self) -> None:
        """Nothing reaches standard output."""
        printed_nothing(self.everything())


def answer_digest(answer: Answer) -> str:
    """What an answer holds, times and processes apart."""
    reason = answer.reason if answer.ending != "returned" else ""
    return digest(
        (
            *(answer.ending, answer.result, answer.schedule, answer.trace, answer.profile, answer.graph, reason),
            answer.cells,
        )
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


def breakdown(answer: Answer) -> str | None:
    """Why an answer is neither a result nor an error that a user could act on."""
    return f"{answer.name}: {answer.ending}: {answer.reason}" if answer.ending in BROKEN else None
