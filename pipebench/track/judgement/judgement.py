"""What a history says tonight: everything that a check decides by and a report shows."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal

from pipebench.bench.difference.operands import PlanSide
from pipebench.bench.difference.plans import PlanDifference, compare_plans
from pipebench.domain.errors import ExitCode, PipebenchError
from pipebench.domain.value import Value
from pipebench.track.judgement.acknowledgements import Acknowledgement, strangers, with_acknowledgements
from pipebench.track.judgement.benchmarks import BenchmarkSpeed, benchmark_notes, benchmark_speeds, doubled_events
from pipebench.track.judgement.events import Event, Segment, exact_changes
from pipebench.track.judgement.speeds import Speed, information_notes, speeds, time_events
from pipebench.track.measurement.ratios import Control, control
from pipebench.track.nights.conditions import MachineClass
from pipebench.track.nights.history import History
from pipebench.track.nights.night import CLOCKS, GAP, Night, NoPlan
from pipebench.track.rule.rule import WINDOW

Verdict = Literal["worse", "nothing measured", "imprecise", "steady"]


class Judgement(Value, frozen=True, kw_only=True):
    """One history, judged.

    night: the last one; machine: its class, with new_machine when the class has no other night. events: all of
    them, oldest first. plans: for each event (by identity) whose plan is another one, what differs. segments:
    those that began tonight. without_plan: subjects of the last night, with the reason. benchmarks: those imported
    tonight. information: wall times and memory far off;
    nothing fails by them.
    """

    folder: str
    nights: int
    night: Night | None
    machine: MachineClass | None
    new_machine: bool = False
    events: tuple[Event, ...] = ()
    plans: dict[str, PlanDifference] = {}
    speeds: tuple[Speed, ...] = ()
    segments: tuple[Segment, ...] = ()
    without_plan: tuple[NoPlan, ...] = ()
    control: Control = Control()
    benchmarks: tuple[BenchmarkSpeed, ...] = ()
    information: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """The first that holds: something is worse and open, nothing was measured, something is imprecise.

        Nothing was measured where there is no benchmark and no planner gave a plan.
        """
        if any(event.fails for event in self.events):
            return "worse"
        if self.night is None or not (self.night.benchmarks or len(self.without_plan) < len(self.night.measured)):
            return "nothing measured"
        return "imprecise" if any(speed.imprecise for speed in self.speeds) else "steady"

    @property
    def exit_code(self) -> ExitCode:
        """What a check tells its caller; an imprecise night is no failure."""
        codes = {"worse": ExitCode.CONDITION_FAILED, "nothing measured": ExitCode.NOTHING_RAN}
        return codes.get(self.verdict, ExitCode.OK)


def judge(history: History, known: Sequence[Acknowledgement] = (), now: datetime | None = None) -> Judgement:
    """The judgement of a history. now: to say how old the last night is. Raises PipebenchError: an edited plan."""
    kept = history.nights
    if not kept:
        return Judgement(folder=str(history.folder), nights=0, night=None, machine=None)
    last = kept[-1]
    machine, nights = last.machine, history.of_class(last.machine)
    changes = exact_changes(kept)
    events = list(changes.events)
    accepted = {each.event for each in known}
    for each in history.machines:
        events += time_events(history.of_class(each), each.name, accepted)
    events += doubled_events(kept)
    events = with_acknowledgements(sorted(events, key=lambda event: event.told), known)
    new_machine = len(nights) == 1 and len(kept) > 1
    notices = [*history.notices, *strangers(events, known), *last.night.notices, *_not_measured(nights)]
    if new_machine:
        notices.insert(0, _new_machine_notice(machine))
    if now is not None and now - last.night.at > GAP:
        notices.insert(
            0, f"the last night is of {last.night.date}, {(now - last.night.at) // timedelta(days=1)} days ago"
        )
    if now is not None and last.night.at > now + CLOCKS:
        here = now.astimezone(UTC).isoformat(timespec="seconds")
        notices.insert(0, f"two clocks: the last night is dated {last.night.recorded_at}, here it is {here}")
    return Judgement(
        folder=str(history.folder),
        nights=len(kept),
        night=last.night,
        machine=machine,
        new_machine=new_machine,
        events=tuple(events),
        plans=_plan_differences(history, events),
        speeds=tuple(speeds(nights)),
        segments=tuple(each for each in changes.segments if each.began == last.night.recorded_at),
        without_plan=tuple(each.no_plan for each in last.night.measured if each.no_plan is not None),
        control=control(nights),
        benchmarks=tuple(benchmark_speeds(nights)),
        information=(*information_notes(nights), *benchmark_notes(nights)),
        notices=tuple(notices),
    )


def _new_machine_notice(machine: MachineClass) -> str:
    return (
        f"a machine not seen before: {machine.words}; exact columns are compared with the last night elsewhere, "
        "times start anew: each class of machines has a level of its own"
    )


def _not_measured(nights: Sequence[Night]) -> list[str]:
    """Subjects of the last nights that tonight lacks, by the night in which each was measured last."""
    if not nights or not nights[-1].measured:
        return []
    seen = {each.subject for each in nights[-1].measured}
    found = []
    for night in reversed(nights[-1 - WINDOW : -1]):
        gone = [each.subject for each in night.measured if each.subject not in seen]
        seen.update(gone)
        if gone:
            labels = "; ".join(each.label for each in gone)
            found.append(f"not measured tonight, last on {night.date}: {labels}")
    return found


def _plan_differences(history: History, events: Sequence[Event]) -> dict[str, PlanDifference]:
    """Of the events whose plan is another one, where both plans were kept."""
    found: dict[str, PlanDifference] = {}
    for event in events:
        if event.plans is None or event.plans[0] == event.plans[1]:
            continue
        before, after = (history.plan(plan_id) for plan_id in event.plans)
        if before is not None and after is not None:
            sides = [
                PlanSide(source, plan, planner=event.planner)
                for source, plan in (("the night before", before), (event.told[:10], after))
            ]
            found[event.identity] = compare_plans(sides[0], sides[1])
    return found


def require_nights(judgement: Judgement) -> None:
    """Raises PipebenchError where there is no night at all."""
    if judgement.night is None:
        raise PipebenchError(
            f"there is no history in {judgement.folder!r}",
            "`pipebench track record` makes one",
            ExitCode.NOTHING_RAN,
        )
