"""The timelines of the plans for one problem, as many as a page has room for."""

from collections.abc import Sequence
from dataclasses import replace

from markupsafe import Markup

from pipebench.bench.services import HostServices
from pipebench.costs.quantise import NS_PER_S
from pipebench.documents.document import PlannedProblem
from pipebench.domain.errors import PipebenchError
from pipebench.domain.problem import RegimeMode
from pipebench.domain.schedule import PeriodicSchedule
from pipebench.report.gantt.contest import Contest, PlanTimeline, contests_svg
from pipebench.report.gantt.gantt import Gantt
from pipebench.report.gantt.laps import laps_of, periods_of
from pipebench.report.html.template import picture
from pipebench.report.pictures import plan_gantt
from pipebench.report.problem_blocks import Entrant, ProblemBlock, cut_words, names_of, same_plans, share_of_bound
from pipebench.report.text.comparisons.why import PlanOf
from pipebench.report.units import rate, seconds

TIMELINES_BYTES = 600_000
"""Of the timelines of all problems of a page together."""
SMALLEST_PICTURE = 4000
MOST_TIMELINES = 8
"""Of one regime of a problem."""
MOST_TASKS = 100_000
"""Of a plan that is drawn."""
HOW_TO_DRAW = "pipebench plan with -o writes a plan, and pipebench show draws it, with --picture"
NEAR = 0.005
"""A pattern that is drawn so much slower or faster than it was simulated says so."""
TITLES: dict[RegimeMode, str] = {"sync": "sync: with a flush", "async": "async: a steady state without a flush"}


class Timelines:
    """Draws problem after problem until there is no room. services: simulate what is drawn."""

    def __init__(self, services: HostServices) -> None:
        self._services = services
        self._room = TIMELINES_BYTES

    def picture(self, block: ProblemBlock, plan_of: PlanOf) -> tuple[Markup | None, str]:
        """The plans that are known, the best first, and what is left out, in words; nothing where none is known.

        Plans that are the same in the same order are drawn once. plan_of: finds plans whose schedule can run.
        """
        found = {mode: same_plans(block.ranked(mode)) for mode in block.regimes}
        if all(plan_of(same[0][1]) is None for listed in found.values() for same in listed):
            return None, ""
        too_much = None, f"The timelines are left out to keep the page small: {HOW_TO_DRAW}."
        if self._room < SMALLEST_PICTURE:
            return too_much
        contests = [self._contest(block, mode, same, plan_of) for mode, same in found.items()]
        svg = contests_svg(
            [each for each in contests if each.plans], "Timelines of one mini-batch, the best first"
        )
        if len(svg) > self._room:
            return too_much
        self._room -= len(svg)
        missing = sum(map(len, found.values())) - sum(len(each.plans) for each in contests)
        return picture(svg), f"Timelines left out: {missing}. {HOW_TO_DRAW}." if missing else ""

    def _contest(
        self, block: ProblemBlock, mode: RegimeMode, found: Sequence[Sequence[Entrant]], plan_of: PlanOf
    ) -> Contest:
        drawn = [self._timeline(same, plan_of) for same in found[:MOST_TIMELINES]]
        bound = block.bounds().get(mode)
        bound_ns = bound.bound_s * NS_PER_S if bound is not None and bound.bound_s else None
        return Contest(TITLES[mode], [each for each in drawn if each is not None], bound_ns)

    def _timeline(self, same: Sequence[Entrant], plan_of: PlanOf) -> PlanTimeline | None:
        """None for a plan that is not known, has too many tasks, or cannot be simulated."""
        planned = plan_of(same[0][1])
        if planned is None or _tasks(planned) > MOST_TASKS:
            return None
        try:
            drawn = self._devices(planned)
        except PipebenchError:
            return None  # the row's details say what is wrong
        return PlanTimeline(_words(same, planned, drawn), drawn)

    def _devices(self, planned: PlannedProblem) -> Gantt:
        """From the start of a mini-batch to its end; of a pattern as many periods as that takes."""
        if isinstance(planned.schedule, PeriodicSchedule):
            return laps_of(planned.problem, planned.plan, planned.schedule)
        whole = plan_gantt(planned, self._services)
        return replace(whole, rows=tuple(row for row in whole.rows if not row.link))


def _tasks(planned: PlannedProblem) -> int:
    """Of one mini-batch."""
    schedule = planned.schedule
    if isinstance(schedule, PeriodicSchedule):
        return len(schedule.kinds) * periods_of(planned.problem, planned.plan)
    return sum(len(lane.kinds) for lane in schedule.lanes) if schedule is not None else 0


def _words(same: Sequence[Entrant], planned: PlannedProblem, drawn: Gantt) -> str:
    """Whose plan it is and what it is worth."""
    row = same[0][1]
    share = share_of_bound(row)
    words = f"{names_of(same)}: {rate(row.throughput)} samples/s"
    words += f", {100 * share:.1f} % of the bound" if share is not None else ""
    words += f"; {cut_words(row)}; {row.scheduler}"
    if planned.plan.copies > 1:
        words += f"; the first of {planned.plan.copies} copies"
    simulated_s, drawn_s = row.simulated_s or 0.0, drawn.until_ns / NS_PER_S
    if abs(simulated_s - drawn_s) > NEAR * simulated_s:
        words += f"; drawn is the pattern, simulated it takes {seconds(simulated_s)}"
    return words
