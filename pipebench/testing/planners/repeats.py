"""The same question has the same answer, in another process and after other questions; nothing is left behind."""

from collections.abc import Iterator

from pipebench.domain.value import digest
from pipebench.testing.asked import called_as_declared, left_nothing, printed_nothing
from pipebench.testing.calls import Answer
from pipebench.testing.planners.questions import AGAIN, FIRST, Interview, Question
from pipebench.testing.problems import CASES
from pipebench.testing.verdicts import Waived, first_failure


def determinism(interview: Interview) -> None:
    """Two processes, the same problem and seed: the same plan, schedule and claims."""

    def wrong() -> Iterator[str | None]:
        for question, one, other in _twice(interview):
            if _said(one) != _said(other):
                yield f"{question.call.name}: two processes with the same seed get different results"

    first_failure(wrong())


def counters(interview: Interview) -> None:
    """Work counters are counts, and the same from run to run."""
    everything = [*interview.first, *interview.second]
    first_failure(f"{q.call.name}: {a.counters_wrong}" for q, a in everything if a.counters_wrong)
    first_failure(
        f"{q.call.name}: counter {name!r} is {value}, a count is not negative"
        for q, a in everything
        for name, value in (a.counters or {}).items()
        if value < 0
    )

    def wrong() -> Iterator[str | None]:
        for question, one, other in _twice(interview):
            for name in sorted((one.counters or {}).keys() | (other.counters or {}).keys()):
                first, second = (each.counters.get(name) if each.counters else None for each in (one, other))
                if first != second:
                    yield f"{question.call.name}: counter {name!r} is {first} in one run and {second} in another"

    first_failure(wrong())
    if not any(a.counters for _, a in everything):
        raise Waived("it counts nothing; context.count(name) makes its work comparable from night to night")


def state(interview: Interview) -> None:
    """The answer does not depend on earlier calls, and a call leaves everything as it was."""
    everything = [*interview.first, *interview.second]
    left_nothing(answer for _, answer in everything)

    def wrong() -> Iterator[str | None]:
        for mode in interview.modes:
            one = _answer(interview.first, FIRST, mode)
            other = _answer(interview.first, AGAIN, mode)
            fresh = _answer(interview.second, FIRST, mode)
            if {"hung", "died"} & {one.ending, other.ending} or _said(one) != _said(fresh):
                continue
            counted = one.counters != other.counters and one.counters == fresh.counters
            if _said(one) != _said(other) or counted:
                yield f"chain ({mode}): the answer changes after other problems in the same process"

    first_failure(wrong())


def silence(interview: Interview) -> None:
    """Standard output is the command's: nothing is printed there."""
    printed_nothing(answer for _, answer in (*interview.first, *interview.second))


def calls(interview: Interview) -> None:
    """It declares what it calls: what it asks its context for is in `calls` of its descriptor."""
    called_as_declared(answer for _, answer in (*interview.first, *interview.second))


def _twice(interview: Interview) -> Iterator[tuple[Question, Answer, Answer]]:
    for question, answer in interview.second:
        if question.about in (FIRST, *CASES):
            yield question, _answer(interview.first, question.about, question.mode), answer


def _answer(answered: list[tuple[Question, Answer]], about: str, mode: str) -> Answer:
    return next(a for q, a in answered if q.about == about and q.mode == mode)


def _said(answer: Answer) -> str:
    return digest(
        (answer.ending, answer.result, answer.schedule, answer.reason if answer.ending != "returned" else "")
    )
