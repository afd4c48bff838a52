"""How a planner behaves: deadlines, repeated questions, every option, nothing left behind."""

from collections.abc import Iterator

from pipebench.domain.value import digest
from pipebench.testing import cases
from pipebench.testing.calls import Answer
from pipebench.testing.cases import PROBLEM_CASES
from pipebench.testing.descriptions import changing_texts, check_option_docs, option_texts
from pipebench.testing.planners.questions import (
    AGAIN,
    DEADLINES,
    FIRST,
    SHORT_S,
    SPARE,
    SPARE_S,
    WITHOUT,
    Interview,
    Question,
)
from pipebench.testing.sessions import BROKEN, called_as_declared, left_nothing, printed_nothing, undeclared_call
from pipebench.testing.verdicts import Waived, first_failure


def options(interview: Interview) -> None:
    """Choices, switches and extreme numbers, one at a time on the chain; defaults are tried by every check."""
    planner, subject = interview.planner, interview.subject
    check_option_docs(planner)
    if not option_texts(planner):
        raise Waived("it has no options to try")
    if subject.label != planner.name:
        raise Waived("options are given with its name")
    mode = interview.modes[0]
    chain = cases.chain(mode)
    asked = [
        interview.question(mode, f"{option}={text}", chain, label=f"{planner.name}[{option}={text}]")
        for option, text in changing_texts(planner)
    ]

    def wrong() -> Iterator[str | None]:
        for question, answer in interview.extra(asked):
            if answer.ending in BROKEN:
                yield f"{question.about}: {answer.ending}: {answer.reason}"
            elif answer.ending == "returned" and interview.verdict(question, answer).status == "invalid":
                yield f"{question.about}: the plan is invalid"
            yield undeclared_call(answer)

    first_failure(wrong())


CONFIRMED = 2


def deadline(interview: Interview) -> None:
    """62 operators on 8 devices: a plan or DeadlineReached at most a second after the limit, none with time left.

    A call that is late, but ends, is made again, twice at most: the machine may have been busy.
    """
    asked = [(q, a) for q, a in interview.second if q.about in DEADLINES]
    late = [q for q, a in asked if _late(q, a) and a.ending != "hung"]
    confirmed: list[tuple[Question, Answer]] = []
    for _ in range(CONFIRMED):
        confirmed = _again(interview, late) if late else []
        late = [q for q, a in confirmed if _late(q, a)]

    def wrong() -> Iterator[str | None]:
        for question, answer in asked:
            if answer.ending == "hung":
                yield f"{question.call.name}: still searching after {question.call.most_s:g} s"
        for question, answer in confirmed:
            if _late(question, answer):
                limit = question.call.limit_s
                yield f"{question.call.name}: took {answer.wall_s:.1f} s, the limit was {limit:g} s"
        for question, answer in asked:
            if answer.ending == "infeasible":
                yield f"{question.call.name}: says infeasible when its time is out; raise DeadlineReached"
            if answer.ending == "refused" or answer.ending in BROKEN:
                refused = answer.ending == "refused" and not answer.advised
                remedy = f"; {WITHOUT} raises DeadlineReached then" if refused else ""
                yield f"{question.call.name}: {answer.ending}: {answer.reason}{remedy}"

        for question, answer in interview.second:
            if question.about == SPARE and answer.ending == "deadline" and answer.wall_s < SPARE_S / 2:
                left = f"{question.call.name}: DeadlineReached after {answer.wall_s:.1f} s of {SPARE_S:g} s"
                yield f"{left}; context.deadline_s is a time of time.monotonic()"

    first_failure(wrong())


def _again(interview: Interview, late: list[Question]) -> list[tuple[Question, Answer]]:
    """The late calls once more, in a process that has imported what it needs."""
    warm = [interview.question(mode, FIRST, cases.chain(mode)) for mode in interview.modes]
    return interview.extra([*warm, *late])[len(warm) :]


def _late(question: Question, answer: Answer) -> bool:
    limit = question.call.limit_s or 0.0
    assert limit in (0.0, SHORT_S)
    return answer.ending == "hung" or answer.late_s(limit) > 0


def determinism(interview: Interview) -> None:
    """Two processes, the same problem and seed: the same plan, schedule and claims."""

    def wrong() -> Iterator[str | None]:
        for question, one, other in _twice(interview):
            if _answer_digest(one) != _answer_digest(other):
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
            lost = {"hung", "died", "not asked"} & {one.ending, other.ending}
            if lost or _answer_digest(one) != _answer_digest(fresh):
                continue
            counted = one.counters != other.counters and one.counters == fresh.counters
            if _answer_digest(one) != _answer_digest(other) or counted:
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
        if question.about in (FIRST, *PROBLEM_CASES):
            one = _answer(interview.first, question.about, question.mode)
            if "not asked" not in (one.ending, answer.ending):
                yield question, one, answer


def _answer(answered: list[tuple[Question, Answer]], about: str, mode: str) -> Answer:
    return next(a for q, a in answered if q.about == about and q.mode == mode)


def _answer_digest(answer: Answer) -> str:
    return digest(
        (answer.ending, answer.result, answer.schedule, answer.reason if answer.ending != "returned" else "")
    )
