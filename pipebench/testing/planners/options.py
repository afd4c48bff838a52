"""Each option of a planner, each value: an answer, never a crash."""

from collections.abc import Iterator

from pipebench.testing import problems
from pipebench.testing.asked import undeclared_call
from pipebench.testing.descriptions import accepted, documented, option_texts
from pipebench.testing.planners.questions import Interview
from pipebench.testing.verdicts import Waived, first_failure


def options(interview: Interview) -> None:
    """Choices, switches and extreme numbers, one at a time on the chain."""
    planner, subject = interview.planner, interview.subject
    texts = option_texts(planner)
    documented(planner)
    if not texts:
        raise Waived("it has no options to try")
    if subject.label != planner.name:
        raise Waived("options are given with its name")
    mode = interview.modes[0]
    chain = problems.chain(mode)
    asked = [
        interview.question(mode, f"{option}={text}", chain, label=f"{planner.name}[{option}={text}]")
        for option, text in texts
        if accepted(planner, option, text)
    ]

    def wrong() -> Iterator[str | None]:
        for question, answer in interview.extra(asked):
            if answer.ending in ("crashed", "died", "hung"):
                yield f"{question.about}: {answer.ending}: {answer.reason}"
            elif answer.ending == "returned" and interview.verdict(question, answer).status == "invalid":
                yield f"{question.about}: the plan is invalid"
            yield undeclared_call(answer)

    first_failure(wrong())
