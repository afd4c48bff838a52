"""Where a planner says `optimal` in a space that the host defines, it is: all plans of the space are tried."""

from collections.abc import Iterator

from pipebench.testing.calls import Answer
from pipebench.testing.planners.questions import Interview, Question
from pipebench.testing.planners.spaces import SPACES, best_seconds, space_of
from pipebench.testing.verdicts import Waived, first_failure

CLOSE = 1e-9
ASKED = ("chain", "memory edge", "one byte less", "pin micro_batch")


def optimality(interview: Interview) -> None:
    """On the chain, with memory to spare and to the byte: no plan of the space is faster, no bound above it."""
    asked = [(q, a) for q, a in interview.plans if q.about in ASKED]
    stated = [(q, a) for q, a in asked if a.result is not None and a.result.bound_scope]
    first_failure(
        f"{q.call.name}: termination is optimal, bound_scope does not say among which plans"
        for q, a in asked
        if a.result is not None and a.result.termination == "optimal" and not a.result.bound_scope
    )
    known = [(q, a) for q, a in stated if a.result is not None and space_of(a.result.bound_scope)]
    if not known:
        scopes = sorted({a.result.bound_scope for _, a in stated if a.result is not None})
        spaces = ", ".join(repr(space.name) for space in SPACES)
        about = f"its scope is its own ({scopes[0]!r})" if scopes else "it claims no optimum"
        raise Waived(f"{about}; tried out are {spaces}")
    first_failure(reason for question, answer in known for reason in _wrong(interview, question, answer))


def _wrong(interview: Interview, question: Question, answer: Answer) -> Iterator[str]:
    result = answer.result
    assert result is not None
    space = space_of(result.bound_scope)
    assert space is not None
    if space.regime != question.mode:
        yield f"{question.call.name}: {space.name!r} is a space of {space.regime} plans"
        return
    best = best_seconds(interview.services, question.problem, space)
    if best is None:
        yield f"{question.call.name}: the space {space.name!r} holds no valid plan"
        return
    seconds = interview.seconds(question, answer)
    if result.termination == "optimal" and seconds > best * (1 + CLOSE):
        yield f"{question.call.name}: optimal at {seconds:.9g} s is said, the best of the space takes {best:.9g} s"
    if seconds < best * (1 - CLOSE):
        yield f"{question.call.name}: {seconds:.9g} s beats the best of its space, {best:.9g} s: it is not of it"
    if result.lower_bound_s is not None and result.lower_bound_s > best * (1 + CLOSE):
        yield f"{question.call.name}: bound {result.lower_bound_s:.9g} s, the best of the space takes {best:.9g} s"
