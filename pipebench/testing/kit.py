"""The conformance kit: all checks of a plugin, slot by slot."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from pipebench.bench.components import ready_planner, ready_scheduler
from pipebench.domain.errors import PipebenchError, unknown
from pipebench.formats.profiles.shipped import profile_names
from pipebench.hooks.manager import Host
from pipebench.hooks.syntax import parse_reference
from pipebench.testing import cases
from pipebench.testing.calls import Call
from pipebench.testing.descriptions import discovery, metadata
from pipebench.testing.executors import executor_checks
from pipebench.testing.needs import call_needs
from pipebench.testing.planners.behaviour import calls, counters, deadline, determinism, options, silence, state
from pipebench.testing.planners.effort import clocks, files, memo, offload
from pipebench.testing.planners.honesty import capabilities, case, claims, infeasible, memory_edge, pins
from pipebench.testing.planners.optimality import optimality
from pipebench.testing.planners.questions import Interview
from pipebench.testing.schedulers import scheduler_checks
from pipebench.testing.sessions import RepeatedCalls, Slow, breakdown
from pipebench.testing.sources import format_checks, model_checks, profiler_checks
from pipebench.testing.targets import CheckTarget, check_targets
from pipebench.testing.verdicts import Check, CheckOutcome, ConformanceReport, Failed, first_failure, outcome_of


def artefact_checks(host: Host, subject: CheckTarget) -> Iterator[tuple[str, Callable[[], None]]]:
    """Claims, cells, and a judge that gives one finding for each claim even without results."""
    call = Call(name="artefact", slot="artefacts", component=subject.label)
    asked = RepeatedCalls(subject.calls, [call], lambda given, name: replace(given, name=name))
    yield "judge", partial(_claims_judged, asked)
    yield "cells", partial(_cells_can_run, host, asked)
    yield "determinism", asked.determinism
    yield "silence", asked.silence
    yield "state", asked.state


def _claims_judged(asked: RepeatedCalls) -> None:
    """Claims, something to run, and one finding for each claim even where nothing has run."""
    answer = asked.first["artefact"]
    first_failure([breakdown(answer), *answer.flaws])


def _cells_can_run(host: Host, asked: RepeatedCalls) -> None:
    """What the cells name is there: planners and schedulers with their options, models, profiles."""
    answer = asked.first["artefact"]
    first_failure([breakdown(answer)])
    for cell in answer.cells:
        try:
            ready_planner(host, parse_reference(cell.planner))
            if cell.scheduler is not None:
                ready_scheduler(host, cell.scheduler)
            if cell.model is not None:
                host.find("models", parse_reference(cell.model).name)
        except PipebenchError as error:
            raise Failed(f"the cell {dict(cell.at)}: {error}") from None
        if cell.profile is not None and cell.profile not in profile_names() and not Path(cell.profile).is_file():
            raise Failed(f"the cell {dict(cell.at)}: {unknown('profile', cell.profile, profile_names())}")


CHECKS: dict[str, Callable[[Interview], None]] = {
    **{f"validity-{name}": partial(case, name=name) for name in cases.PROBLEM_CASES},
    "infeasible": infeasible,
    "memory-edge": memory_edge,
    "pins": pins,
    "determinism": determinism,
    "counters": counters,
    "deadline": deadline,
    "capabilities": capabilities,
    "calls": calls,
    "claims": claims,
    "optimality": optimality,
    "silence": silence,
    "state": state,
    "clocks": clocks,
    "files": files,
    "memo": memo,
    "offload": offload,
    "options": options,
}


def planner_checks(host: Host, subject: CheckTarget) -> Iterator[tuple[str, Callable[[], None]]]:
    """Name and work of each; the planner is asked when the first of them runs."""
    interview = Interview(host, subject)
    for name, check in CHECKS.items():
        yield name, partial(check, interview)


SLOT_CHECKS: dict[str, Callable[[Host, CheckTarget], Iterator[tuple[str, Callable[[], None]]]]] = {
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

    Nothing of the plugin runs before a check does. Raises PipebenchError as `check_targets` does, and for a waiver
    of a check that there is not.
    """
    return _listed(check_targets(host, target), host)


def _listed(targets: Sequence[CheckTarget], host: Host) -> list[tuple[Check, str | None]]:
    found: list[tuple[Check, str | None]] = []
    waived: set[tuple[str, str]] = set()
    names: set[tuple[str, str]] = set()
    for subject in targets:
        mine = slot_checks(host, subject)
        # A name may stand in several slots, a waiver is of those that have the check.
        names |= {(subject.label, check.name) for check in mine}
        waived |= {(subject.label, check) for check in subject.waived}
        found += [(check, subject.waived.get(check.name)) for check in mine]
    for label, unknown_check in sorted(waived - names):
        raise PipebenchError(f"{label}: a waiver of {unknown_check!r}, there is no such check")
    return found


def check_plugin(
    host: Host,
    target: str,
    told: Callable[[CheckOutcome], None] | None = None,
    only: Sequence[str] = (),
    slow: Slow | None = None,
) -> ConformanceReport:
    """Run all checks, or `only` those of these names, with the calls that they need.

    told: hears of each outcome as it is known. slow: of a call that takes long, on another thread.
    Raises PipebenchError as `checks` does, and for a name that no check has.
    """
    targets = check_targets(host, target)
    listed = _listed(targets, host)
    names = {check.name for check, _ in listed}
    for name in only:
        if name not in names:
            raise unknown("check", name, names)
    for subject in targets:
        subject.calls.slow = slow
        for name in only:
            subject.calls.need(call_needs(subject, name))
    outcomes: list[CheckOutcome] = []
    for check, waived in listed:
        if not only or check.name in only:
            outcomes.append(outcome_of(check, waived))
            if told is not None:
                told(outcomes[-1])
    return ConformanceReport(target=target, outcomes=tuple(outcomes))


def slot_checks(host: Host, subject: CheckTarget) -> list[Check]:
    """The checks of one component."""
    return [
        Check(
            name,
            subject.slot.removesuffix("s"),
            subject.label,
            work,
            partial(subject.calls.lack, call_needs(subject, name)),
        )
        for name, work in _of(host, subject)
    ]


def _of(host: Host, subject: CheckTarget) -> Iterator[tuple[str, Callable[[], None]]]:
    if subject.point is not None:
        yield "discovery", partial(discovery, subject)
        yield "metadata", partial(metadata, host, subject.slot, subject.component)
    if subject.slot in SLOT_CHECKS:
        yield from SLOT_CHECKS[subject.slot](host, subject)
