"""What a claim comes to when it is tried on several planners, models or sizes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pipebench.domain.artefact import Claim, Finding, Judgement

NO_CASES = "no cells with plans of those that are compared"


@dataclass(frozen=True, slots=True)
class Case:
    """One trial of a claim: a planner, a pair of them, a model or a size.

    line: what was measured.
    value: the figure that decides; the smaller, the worse for the claim.
    holds: whether the claim holds here.
    name: what it was tried on; empty: the line alone says so.
    """

    line: str
    value: float
    holds: bool
    name: str = ""


def named_case(name: str, text: str, value: float, holds: bool) -> Case:
    """A case whose line is `name: text`."""
    return Case(f"{name}: {text}", value, holds, name)


def judgement(holds: Sequence[bool]) -> Judgement:
    """`holds` or `does not hold` where all agree, else `depends`."""
    return "holds" if all(holds) else "depends" if any(holds) else "does not hold"


def finding(claim: Claim, cases: Sequence[Case], reason: str, value: float | None = None) -> Finding:
    """A finding from one case or more.

    reason: why it is judged so.
    value: the figure that decides; by default the smallest of the cases against, or of all where none is.
    """
    against = [case for case in cases if not case.holds]
    return Finding(
        claim=claim,
        measured=tuple(case.line for case in cases),
        value=min(case.value for case in against or cases) if value is None else value,
        judgement=judgement([case.holds for case in cases]),
        reason=reason,
    )


def claim_only(claim: Claim, reason: str = NO_CASES) -> Finding:
    """A finding without cases."""
    return Finding(claim=claim, judgement="claim only", reason=reason)


def judge_cases(
    claim: Claim, cases: Iterable[Case], rule: str, otherwise: str = "", *, no_cases: str = NO_CASES
) -> Finding:
    """A finding whose reason is the rule, and the cases for and against where they do not agree.

    rule: what holding asks.
    otherwise: what is known of the cases against.
    no_cases: the reason where there are none.
    """
    cases = list(cases)
    if not cases:
        return claim_only(claim, no_cases)
    reason = rule
    agreeing, against = [case for case in cases if case.holds], [case for case in cases if not case.holds]
    if against and not all(case.name for case in cases):
        reason = f"{rule}; not so in {len(against)} of {len(cases)} cases. {otherwise}".strip()
    else:
        reason += f". So for {_names(agreeing)}; not for {_names(against)}" if agreeing and against else ""
        reason += f". {otherwise}" if against and otherwise else ""
    return finding(claim, cases, reason)


def _names(cases: Sequence[Case]) -> str:
    return ", ".join(case.name for case in cases)
