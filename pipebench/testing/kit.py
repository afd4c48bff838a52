"""The conformance kit: all checks of a plugin."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from pipebench.domain.errors import PipebenchError, unknown
from pipebench.hooks.manager import Host
from pipebench.testing.artefacts import artefact_checks
from pipebench.testing.descriptions import metadata
from pipebench.testing.discovery import discovery
from pipebench.testing.executors.checks import executor_checks
from pipebench.testing.formats import format_checks
from pipebench.testing.planners.checks import planner_checks
from pipebench.testing.schedulers import scheduler_checks
from pipebench.testing.sources import model_checks, profiler_checks
from pipebench.testing.subject import Subject, subjects
from pipebench.testing.verdicts import Check, Outcome, Report, outcome_of

SLOT_CHECKS: dict[str, Callable[[Host, Subject], Iterator[tuple[str, Callable[[], None]]]]] = {
    "planners": planner_checks,
    "schedulers": scheduler_checks,
    "executors": executor_checks,
    "profilers": profiler_checks,
    "models": model_checks,
    "formats": format_checks,
    "artefacts": artefact_checks,
}


def checks(host: Host, target: str) -> list[tuple[Check, str | None]]:
    """Every check of what `target` names, with its author's reason where it is waived.

    Nothing of the plugin runs before a check does. Raises PipebenchError as `subjects` does, and for a waiver
    of a check that there is not.
    """
    found: list[tuple[Check, str | None]] = []
    waived: set[tuple[str, str]] = set()
    names: set[tuple[str, str]] = set()
    for subject in subjects(host, target):
        mine = slot_checks(host, subject)
        # A name may stand in several slots, a waiver is of those that have the check.
        names |= {(subject.label, check.name) for check in mine}
        waived |= {(subject.label, check) for check in subject.waived}
        found += [(check, subject.waived.get(check.name)) for check in mine]
    for label, unknown_check in sorted(waived - names):
        raise PipebenchError(f"{label}: a waiver of {unknown_check!r}, there is no such check")
    return found


def check_plugin(
    host: Host, target: str, told: Callable[[Outcome], None] | None = None, only: Sequence[str] = ()
) -> Report:
    """Run all checks, or `only` those of these names; `told` hears of each outcome as it is known.

    Raises PipebenchError as `checks` does, and for a name that no check has.
    """
    listed = checks(host, target)
    names = {check.name for check, _ in listed}
    for name in only:
        if name not in names:
            raise unknown("check", name, names)
    outcomes: list[Outcome] = []
    for check, waived in listed:
        if not only or check.name in only:
            outcomes.append(outcome_of(check, waived))
            if told is not None:
                told(outcomes[-1])
    return Report(target=target, outcomes=tuple(outcomes))


def slot_checks(host: Host, subject: Subject) -> list[Check]:
    """The checks of one component."""
    return [Check(name, subject.slot.removesuffix("s"), subject.label, work) for name, work in _of(host, subject)]


def _of(host: Host, subject: Subject) -> Iterator[tuple[str, Callable[[], None]]]:
    if subject.point is not None:
        yield "discovery", partial(discovery, subject)
        yield "metadata", partial(metadata, host, subject.slot, subject.component)
    if subject.slot in SLOT_CHECKS:
        yield from SLOT_CHECKS[subject.slot](host, subject)
