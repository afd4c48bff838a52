"""A deadline ends a search within the host's grace."""

from collections.abc import Iterator

from pipebench.testing import problems
from pipebench.testing.calls import Answer
from pipebench.testing.planners.questions import FIRST, SHORT_S, Interview, Question
from pipebench.testing.verdicts import first_failure

CONFIRMED = 2


def deadline(interview: Interview) -> None:
    """62 operators on 8 devices: a plan or DeadlineReached at most a second after the limit.

    A call that is late, but ends, is made again, twice at most: the machine may have been busy.
    """
    asked = [(q, a) for q, a in interview.second if q.about.startswith("deadline")]
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
            if answer.ending in ("crashed", "died", "refused"):
                yield f"{question.call.name}: {answer.ending}: {answer.reason}; raise DeadlineReached"

    first_failure(wrong())


def _again(interview: Interview, late: list[Question]) -> list[tuple[Question, Answer]]:
    """The late calls once more, in a process that has imported what it needs."""
    warm = [interview.question(mode, FIRST, problems.chain(mode)) for mode in interview.modes]
    return interview.extra([*warm, *late])[len(warm) :]


def _late(question: Question, answer: Answer) -> bool:
    limit = question.call.limit_s or 0.0
    assert limit in (0.0, SHORT_S)
    return answer.ending == "hung" or answer.late_s(limit) > 0
