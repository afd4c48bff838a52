"""What an artefact loads: an object that knows what to run and, from rows alone, what came of it."""

from collections.abc import Sequence
from typing import Protocol

from pipebench.domain.artefact import Cell, Claim, Figure, Finding, Result


class Reproduction(Protocol):
    """One figure or table of a paper. judge and series are pure: the same results give the same answer.

    Results may lack cells (a run that was stopped) and hold rows of any status. `pipebench.artefacts` is the
    kit for it: rows by place and contender, curves, findings from cases.
    """

    @property
    def claims(self) -> tuple[Claim, ...]:
        """The paper's claims about it, each with its quote."""

    def suite(self, full: bool, profiles: Sequence[str] = ()) -> tuple[Cell, ...]:
        """What to run: a subset of a few minutes, or all. profiles: the user's files, beside what ships."""

    def judge(self, results: Sequence[Result]) -> list[Finding]:
        """One finding for each claim, in their order. Crashes that no cell expects are not among the results."""

    def series(self, results: Sequence[Result]) -> Figure:
        """The plot."""
