"""Checks of schedulers: valid orders for the plans that they say they can order."""

from collections.abc import Callable, Iterator
from functools import partial

from msgspec.structs import replace

from pipebench.check import check_schedule
from pipebench.domain.problem import RegimeMode
from pipebench.domain.schedule import FiniteSchedule, PeriodicSchedule
from pipebench.hooks.descriptors import ScheduleCapabilities, Scheduler
from pipebench.hooks.manager import Host
from pipebench.hooks.placements import placements_of, takes
from pipebench.testing.calls import Answer, Call
from pipebench.testing.descriptions import tried_options
from pipebench.testing.plan_cases import PLAN_CASES, SHARED, PlanCase, plan_case
from pipebench.testing.sessions import RepeatedCalls, breakdown
from pipebench.testing.targets import CheckTarget
from pipebench.testing.verdicts import Failed, Waived, first_failure


def scheduler_checks(host: Host, subject: CheckTarget) -> Iterator[tuple[str, Callable[[], None]]]:
    """Validity of each plan's schedule, its kind, and what holds in every slot."""
    del host
    assert isinstance(subject.component, Scheduler)
    abilities = subject.component.capabilities
    mode: RegimeMode = "async" if abilities.produces == "periodic" else "sync"
    planned = _plans(abilities, mode)
    asked = RepeatedCalls(
        subject.calls, [_call(subject.label, name, each) for name, each in planned.items()], _rename_call
    )
    for name, each in planned.items():
        yield f"validity-{name}", partial(_valid, asked, name, each)
    yield "capabilities", partial(_capable, asked, planned, abilities)
    yield "calls", asked.call_declarations
    yield "determinism", asked.determinism
    yield "silence", asked.silence
    yield "state", asked.state
    yield "options", partial(tried_options, subject, lambda label: _call(label, label, _plainest(planned)))


def _plans(abilities: ScheduleCapabilities, mode: RegimeMode) -> dict[str, PlanCase]:
    """The plans that it meets: those whose placement it takes; the host calls it for no others."""
    placements = placements_of(abilities)
    plain = {name: plan_case(name, mode) for name in PLAN_CASES}
    found = {name: each for name, each in plain.items() if takes(abilities, each.plan)}
    shared = {name: plan_case(name, mode) for kind in placements for name in SHARED.get(kind, ())}
    return found | {name: each for name, each in shared.items() if takes(abilities, each.plan)}


def _plainest(planned: dict[str, PlanCase]) -> PlanCase:
    """A plan that takes no capability but the placement."""
    return planned.get("chain") or next(each for each in planned.values() if each.needs is None)


def _call(label: str, name: str, planned: PlanCase) -> Call:
    return Call(name=name, slot="schedulers", component=label, problem=planned.problem, plan=planned.plan)


def _rename_call(call: Call, name: str) -> Call:
    return replace(call, name=name)


def _valid(asked: RepeatedCalls, name: str, planned: PlanCase) -> None:
    """A valid schedule of a small plan, or a refusal with a reason."""
    answer = asked.first[name]
    reason = breakdown(answer)
    if reason or answer.ending == "refused":
        raise Failed(reason or f"{name}: {answer.reason}; raise UnsupportedProblem for what it cannot order")
    if answer.schedule is None:
        raise Waived(f"refused: {answer.reason}")
    verdict = check_schedule(planned.problem, planned.plan, answer.schedule)
    if verdict.status != "valid":
        told = f"{verdict.witness.rule}: {verdict.witness.message}" if verdict.witness else verdict.reason
        raise Failed(f"{name}: the schedule is {verdict.status}: {told}")


def _capable(asked: RepeatedCalls, planned: dict[str, PlanCase], abilities: ScheduleCapabilities) -> None:
    """It refuses no plan that it declares, and makes schedules of the kind that it declares."""
    if not planned:
        raise Failed("placements is empty: it takes no plan")
    beyond = {
        *(["stage_graphs"] if abilities.stage_graphs != "dag" else []),
        *(["per_stage_micro_batch"] if not abilities.per_stage_micro_batch else []),
    }
    first_failure(
        f"{name}: declared, and refused: {answer.reason}"
        for name, answer in asked.first.items()
        if name in planned and planned[name].needs not in beyond and answer.ending == "unsupported"
    )
    first_failure(_kinds(asked.first, abilities))


def _kinds(given: dict[str, Answer], abilities: ScheduleCapabilities) -> Iterator[str | None]:
    for name, answer in given.items():
        if answer.schedule is not None:
            kind = "periodic" if isinstance(answer.schedule, PeriodicSchedule) else "finite"
            if kind != abilities.produces:
                yield f"{name}: the schedule is {kind}, capabilities.produces is {abilities.produces!r}"
            lanes = answer.schedule.lanes if isinstance(answer.schedule, FiniteSchedule) else ()
            if not abilities.pairs and any(lane.together for lane in lanes):
                yield f"{name}: the schedule runs a forward and a backward at once, capabilities.pairs is false"
