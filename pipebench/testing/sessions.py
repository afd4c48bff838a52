"""The parent's side: calls of a component in two child processes, and what holds for every slot."""

import re
import signal
import threading
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
from pipebench.hooks.discovery import is_pythons, is_suites
from pipebench.testing.calls import LONG_S, Answer, Call, Ending
from pipebench.testing.probe import SAMPLE, WORK, PackageFile
from pipebench.testing.verdicts import Waived, first_failure

SLOW_S = 5.0
"""A call that takes longer is told of."""
FATAL, MODULES = "Fatal Python error:", "Extension modules:"
FRAME = re.compile(r'  File "(?P<file>.+)", line (?P<line>\d+) in (?P<function>.+)')
"""What faulthandler prints when a signal ends the process."""


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


Slow = Callable[[str], None]
"""Told in words of a call that takes long."""


class ComponentCalls:
    """The calls of one component. After one that does not end, or cannot be loaded, none is made.

    slow: told which call it is that takes longer than SLOW_S.
    """

    def __init__(self) -> None:
        self.slow: Slow | None = None
        self._stopped = ""
        self._left_out: set[str] = set()
        self._needs: list[frozenset[str] | None] = []

    def need(self, names: frozenset[str] | None) -> None:
        """From now on make only calls of these names, of names that were needed before, or all (None)."""
        self._needs.append(names)

    def needed(self, calls: Sequence[Call]) -> list[Call]:
        """Those of the calls that some check needs."""
        every = not self._needs or None in self._needs
        return [call for call in calls if every or any(call.name in names for names in self._needs if names)]

    def lack(self, names: frozenset[str] | None) -> str:
        """Why a call of these names, or any (None), was not made; empty where none lacks."""
        lacking = self._left_out if names is None else self._left_out & names
        return _not_asked(self._stopped) if lacking else ""

    def answers(self, calls: Sequence[Call]) -> dict[str, Answer]:
        """The answer to each call by its name. A call that ends its process costs only itself."""
        found: dict[str, Answer] = {}
        left = list(calls)
        while left and not self._stopped:
            ended = _run(left, self.slow)
            for call, answer in zip(left, _decode_answers(ended), strict=False):
                found[call.name] = answer
                if answer.ending == "not loaded":
                    self._stopped = "it cannot be loaded"
                    break
            else:
                if len(ended.messages) < len(left):
                    lost = left[len(ended.messages)]
                    found[lost.name] = _lost_answer(lost, ended)
                    if found[lost.name].ending == "hung" and lost.ends_by_itself:
                        self._stopped = "an earlier call did not end"
            left = [call for call in left if call.name not in found]
        self._left_out |= {call.name for call in left}
        return found | {
            call.name: Answer(name=call.name, ending="not asked", reason=self._stopped) for call in left
        }

    def more(self, calls: Sequence[Call]) -> dict[str, Answer]:
        """Answers to calls of one check alone. Raises Waived where none is made any more."""
        self._go_on()
        return self.answers(calls)

    def session(self, calls: Sequence[Call]) -> Session:
        """Make calls in one process of their own. Raises Waived where none is made any more."""
        self._go_on()
        ended = _run(calls, self.slow)
        return Session(tuple(_decode_answers(ended)), ended.cpu_s)

    def _go_on(self) -> None:
        if self._stopped:
            raise Waived(_not_asked(self._stopped))


def _not_asked(why: str) -> str:
    return f"not asked: {why}"


def _run(calls: Sequence[Call], slow: Slow | None) -> ChildExit:
    errand = Errand(
        work=WORK,
        given=msgspec.msgpack.encode(calls),
        folder=errand_folder(),
        environment=child_environment(("*",)),
        memory_bytes=SEARCH_MEMORY_BYTES,
        network=True,
    )
    limit_s = sum(call.most_s for call in calls)
    if slow is None:
        return isolation().run(errand, limit_s, owner=calls[0].owner)
    watch = _SlowWatch(calls, slow)
    try:
        return isolation().run(errand, limit_s, owner=calls[0].owner, heard=watch.answered)
    finally:
        watch.end()


class _SlowWatch:
    """Says which of the calls of a process runs, where it takes longer than SLOW_S."""

    def __init__(self, calls: Sequence[Call], slow: Slow) -> None:
        self._left, self._slow = iter(calls), slow
        self._timer: threading.Timer | None = None
        self._next()

    def answered(self, message: bytes) -> None:
        """The call that ran has ended, the next one runs."""
        del message
        self.end()
        self._next()

    def end(self) -> None:
        """No call runs."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()

    def _next(self) -> None:
        call = next(self._left, None)
        if call is not None:
            words = f"{call.component}: {call.name}: no answer for {SLOW_S:g} s, ended after {call.most_s:g} s"
            self._timer = threading.Timer(SLOW_S, self._slow, [words])
            self._timer.daemon = True
            self._timer.start()


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
        return PackageFile(missing=ended.words)
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
    how, last = ended.words, last_words(ended.output)
    return Answer(name=call.name, ending="died", reason=f"{how}: {last}" if last else how)


def last_words(output: str) -> str:
    """The last line that a process printed; after a signal the first line of code that is not the suite's."""
    frames = [found for found in map(FRAME.fullmatch, output.splitlines()) if found is not None]
    theirs = [frame for frame in frames if not (frame["file"].startswith("<") or is_suites(frame["file"]))]
    own = [frame for frame in theirs if not is_pythons(frame["file"])]
    if FATAL in output and theirs:
        frame = (own or theirs)[0]
        return f"in {frame['function']}, {frame['file']} line {frame['line']}"
    lines = [line.strip() for line in output.splitlines() if line.strip() and not line.startswith(MODULES)]
    return lines[-1][:200] if lines else ""


BROKEN: tuple[Ending, ...] = ("unusable", "crashed", "hung", "died", "not loaded")


class RepeatedCalls:
    """Calls and their answers, made when they are first looked at.

    The first call is made again at the end, and all are made in a second process in the same order.
    """

    def __init__(self, made: ComponentCalls, calls: Sequence[Call], again: Callable[[Call, str], Call]) -> None:
        self._made, self._calls, self._again = made, list(calls), again

    @cached_property
    def first(self) -> dict[str, Answer]:
        """Answers by the names of the calls; "again" for the first call made twice."""
        return self._made.answers(self._made.needed([*self._calls, self._again(self._calls[0], "again")]))

    @cached_property
    def second(self) -> dict[str, Answer]:
        """Answers of the other process."""
        return self._made.answers(self._made.needed(self._calls))

    def everything(self) -> Iterator[Answer]:
        """All answers of both processes."""
        yield from self.first.values()
        yield from self.second.values()

    def determinism(self) -> None:
        """Two processes get the same."""

        def wrong() -> Iterator[str | None]:
            for name, other in self.second.items():
                if differ(self.first[name], other):
                    yield f"{name}: two processes with the same seed get different results"

        first_failure(wrong())

    def state(self) -> None:
        """Earlier calls do not matter, and a call leaves everything as it was."""
        left_nothing(self.everything())
        first = self._calls[0].name
        fresh = not differ(self.first[first], self.second[first])
        changed = fresh and differ(self.first[first], self.first["again"])
        first_failure([f"{first}: the answer changes after other calls in the same process"] if changed else [])

    def call_declarations(self) -> None:
        """It declares what it calls: what it asks its context for is in `calls` of its descriptor."""
        called_as_declared(self.everything())

    def silence(self) -> None:
        """Nothing reaches standard output."""
        printed_nothing(self.everything())


def differ(one: Answer, other: Answer) -> bool:
    """Whether two answers to a call hold different things; one that was not asked for holds nothing."""
    return "not asked" not in (one.ending, other.ending) and answer_digest(one) != answer_digest(other)


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
