"""What a search costs, and what the same search costs when it is asked again, here and in another process."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from random import SystemRandom
from typing import Literal

from pipebench.domain.problem import Problem, RegimeMode
from pipebench.testing import cases
from pipebench.testing.calls import Answer, Call
from pipebench.testing.sessions import Session

LIMIT_S = 0.5
"""Deadline of a search whose cost is looked at."""
LEAST_S = 0.05
"""A search that takes less says nothing: the noise is as large."""
CHEAP_PART = 0.3
"""What is remembered costs less than this part of the search."""
HIDDEN_S = 0.1
"""More CPU than that, beside what the process itself has seen, is work: the end of a process takes less."""
TRIALS = 3
"""A busy machine makes one search dear and the next cheap; a planner that hides its work does so every time."""
MOST_DIFFERENCE_US = 40

Memory = Literal["none", "process", "elsewhere"]
"""Where a search is remembered."""


@dataclass(frozen=True, slots=True)
class Repeat:
    """One problem that nobody has seen, searched again.

    memory: where the first search is remembered. first_s, again_s: CPU seconds of both searches. hidden_s: CPU
    seconds that the kernel knows of, and the process that searched does not.
    """

    memory: Memory = "none"
    first_s: float = 0.0
    again_s: float = 0.0
    hidden_s: float = 0.0

    @property
    def suspicious(self) -> bool:
        """Whether another trial should confirm it."""
        return self.memory != "none" or self.hidden_s > HIDDEN_S


class Repeats:
    """Searches made again. Each trial has problems of its own, which differ a little by chance.

    session: makes calls in one process. call: gives the call of a planner on a problem with a name.
    """

    def __init__(
        self,
        session: Callable[[Sequence[Call]], Session],
        call: Callable[[str, Problem], Call],
        mode: RegimeMode,
    ) -> None:
        self._session, self._call, self._mode = session, call, mode

    @cached_property
    def trials(self) -> list[Repeat]:
        """One that shows nothing, or as many as it takes to confirm what the first shows."""
        found = [self._trial()]
        while found[-1].suspicious and len(found) < TRIALS:
            found.append(self._trial())
        return found

    def confirmed(self, memory: Memory) -> Repeat | None:
        """The first trial, where all of them find that memory."""
        return self.trials[0] if all(trial.memory == memory for trial in self.trials) else None

    @property
    def hidden_s(self) -> float:
        """The least CPU that stayed hidden in a trial."""
        return min(trial.hidden_s for trial in self.trials)

    def _trial(self) -> Repeat:
        usual, problem = self._unseen(), self._unseen()
        first = self._session(self._calls([usual, problem, problem]))
        if len(first.answers) < 3:
            return Repeat()  # it died or hung: the checks of deadlines and of answers say so
        first_s, again_s = map(_search_s, first.answers[1:])
        memory: Memory = "none"
        if _is_cheap(again_s, first_s):
            memory = self._where(problem)
        return Repeat(memory=memory, first_s=first_s, again_s=again_s, hidden_s=first.hidden_cpu_s)

    def _where(self, problem: Problem) -> Memory:
        """In another process: the problem again after one that nobody has seen, and before one."""
        answers = self._session(self._calls([self._unseen(), problem, self._unseen()])).answers
        if len(answers) < 3 or _search_s(answers[2]) < LEAST_S:
            return "none"  # what was dear the first time was to load the planner
        return "elsewhere" if _is_cheap(_search_s(answers[1]), _search_s(answers[2])) else "process"

    def _calls(self, problems: Sequence[Problem]) -> list[Call]:
        return [self._call(f"large, search {number}", problem) for number, problem in enumerate(problems, 1)]

    def _unseen(self) -> Problem:
        chance = SystemRandom()
        return cases.large(
            self._mode, [chance.randrange(MOST_DIFFERENCE_US) for _ in range(cases.LARGE_OPERATORS)]
        )


def _search_s(answer: Answer) -> float:
    return answer.cpu_s - answer.compile_s


def _is_cheap(seconds: float, full_s: float) -> bool:
    return full_s >= LEAST_S and seconds < CHEAP_PART * full_s
