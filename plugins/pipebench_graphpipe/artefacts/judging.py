"""What a claim comes to when it is tried on several planners, forms or models."""

from collections.abc import Sequence
from dataclasses import dataclass

from pipebench.domain.artefact import Claim, Finding, Judgement


@dataclass(frozen=True, slots=True)
class Case:
    """A claim for one reading of it. value: the figure that decides."""

    name: str
    measured: str
    value: float
    holds: bool


def judged(claim: Claim, found: Sequence[Case], rule: str, otherwise: str = "") -> Finding:
    """`holds` or `does not hold` where all cases agree, else `depends`, with the cases for and against.

    The finding's value is that of the case least in favour. rule: what holding asks; otherwise: why it does not
    hold, or not in all cases.
    """
    if not found:
        return Finding(claim=claim, judgement="claim only", reason="no cells with a plan of those compared")
    agreeing, against = [case for case in found if case.holds], [case for case in found if not case.holds]
    judgement: Judgement = "depends" if agreeing and against else "holds" if agreeing else "does not hold"
    reason = f"asked: {rule}"
    if judgement == "depends":
        reason += f". So for {_names(agreeing)}; not for {_names(against)}"
    if against and otherwise:
        reason += f". {otherwise}"
    return Finding(
        claim=claim,
        measured=tuple(f"{case.name}: {case.measured}" for case in found),
        value=min(case.value for case in against or agreeing),
        judgement=judgement,
        reason=reason,
    )


def plotted_only(claim: Claim) -> Finding:
    """Values that the paper plots and does not print."""
    return Finding(
        claim=claim, judgement="claim only", reason="the paper plots the values and prints none; ours are below"
    )


def _names(found: Sequence[Case]) -> str:
    return ", ".join(case.name for case in found)
