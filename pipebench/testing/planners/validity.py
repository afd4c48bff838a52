"""Every answer is a valid plan, or an honest refusal."""

from collections.abc import Iterator

from pipebench.testing import problems
from pipebench.testing.calls import Answer
from pipebench.testing.planners.questions import AGAIN, FIRST, Interview, Question
from pipebench.testing.verdicts import Waived, first_failure

BROKEN = ("crashed", "hung", "died", "refused", "deadline")


def case(interview: Interview, name: str) -> None:
    """A valid plan on one of the small problems, or a refusal with a reason."""
    names = (name, FIRST, AGAIN) if name == "chain" else (name,)
    asked = [(q, a) for q, a in interview.first if q.about in names]
    first_failure(_wrong(interview, q, a) for q, a in asked)
    refused = [a.reason for q, a in asked if a.ending != "returned"]
    if len(refused) == len(asked):
        raise Waived(f"refused: {refused[0]}")


def infeasible(interview: Interview) -> None:
    """Where provably nothing fits, the answer is InfeasibleProblem (or UnsupportedProblem)."""

    def wrong() -> Iterator[str | None]:
        for question, answer in interview.first:
            if question.about == "starved":
                where = f"{question.call.name}: no plan fits devices of {problems.STARVED_BYTES} bytes"
                yield f"{where}, it returned one" if answer.ending == "returned" else _broken(question, answer)

    first_failure(wrong())


def memory_edge(interview: Interview) -> None:
    """A plan for devices that hold not a byte more than the plan before needs fits them, or there is none."""
    edges = [(q, a) for q, a in interview.second if q.about in ("memory edge", "one byte less")]
    if not edges:
        raise Waived("it has no valid plan of the chain to take the memory from")
    first_failure(_wrong(interview, question, answer) for question, answer in edges)


def pins(interview: Interview) -> None:
    """A pin is honoured, or refused with UnsupportedProblem."""
    pinned = [(q, a) for q, a in interview.first if q.about.startswith("pin ")]
    first_failure(_wrong(interview, question, answer) for question, answer in pinned)


def _wrong(interview: Interview, question: Question, answer: Answer) -> str | None:
    if answer.ending != "returned":
        return _broken(question, answer)
    verdict = interview.verdict(question, answer)
    if verdict.status == "valid":
        return None
    told = f"{verdict.witness.rule}: {verdict.witness.message}" if verdict.witness else verdict.reason
    return f"{question.call.name}: the plan is {verdict.status}: {told}"


def _broken(question: Question, answer: Answer) -> str | None:
    if answer.ending not in BROKEN:
        return None
    remedy = "; raise InfeasibleProblem or UnsupportedProblem" if answer.ending in ("crashed", "refused") else ""
    return f"{question.call.name}: {answer.ending}: {answer.reason}{remedy}"
