"""What a check of the kit comes to: passed, waived with a reason, or failed with a reason."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from pipebench.domain.value import Value

Status = Literal["passed", "waived", "failed"]


class Failed(Exception):
    """The component breaks what the check asks; the text says where and how, in one line."""


class Waived(Exception):
    """The check does not apply; the text says why, in one line."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing asked of one component. name: the fault that it finds. run raises Failed or Waived.

    lack: afterwards, why a call that it needs was not made; empty where none lacks.
    """

    name: str
    slot: str
    component: str
    run: Callable[[], None]
    lack: Callable[[], str]

    def __str__(self) -> str:
        return f"{self.component}:{self.name}"


class CheckOutcome(Value, frozen=True, kw_only=True):
    """What one check came to."""

    check: str
    slot: str
    component: str
    status: Status
    reason: str = ""


class ConformanceReport(Value, frozen=True, kw_only=True):
    """All outcomes of one plugin, in the order of the checks."""

    target: str
    outcomes: tuple[CheckOutcome, ...]

    def count(self, status: Status) -> int:
        """How many checks came to that."""
        return sum(outcome.status == status for outcome in self.outcomes)

    @property
    def totals(self) -> str:
        """One line: how many ran, were waived, failed."""
        run = len(self.outcomes) - self.count("waived")
        return f"{run} run, {self.count('waived')} waived, {self.count('failed')} failed"


def outcome_of(check: Check, waived: str | None = None) -> CheckOutcome:
    """Run one check. waived: the author's own reason not to. An error of the kit itself is raised."""
    status: Status = "passed"
    reason = ""
    try:
        if waived is not None:
            raise Waived(f"by its author: {waived}")
        check.run()
        if lacking := check.lack():
            raise Waived(lacking)
    except Waived as waiver:
        status, reason = "waived", (check.lack() if waived is None else "") or str(waiver)
    except Failed as failure:
        status, reason = "failed", str(failure)
    return CheckOutcome(check=check.name, slot=check.slot, component=check.component, status=status, reason=reason)


def first_failure(reasons: Iterable[str | None]) -> None:
    """Raise Failed with the first reason that is one."""
    for reason in reasons:
        if reason:
            raise Failed(reason)
