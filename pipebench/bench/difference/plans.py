"""Two plans side by side: structure always, costs where they solve the same problem."""

from msgspec.structs import replace

from pipebench.bench.difference.figures import PlanFigures, plan_figures, weight_bytes
from pipebench.bench.difference.problems import problem_changes
from pipebench.bench.difference.sides import PlanSide
from pipebench.bench.difference.structure import Change, Structure, compare_structure
from pipebench.domain.value import Value, digest


class PlanLabel(Value, frozen=True, kw_only=True):
    """Which plan: its file, who made it, its hash."""

    source: str
    planner: str
    scheduler: str
    plan_id: str


class PlanDifference(Value, frozen=True, kw_only=True):
    """What changed from one plan to another.

    schedules_differ: both have a schedule, and not the same; None where one has none. problem: what differs
    between their problems; then, as between plans without a problem, there are no figures.
    """

    before: PlanLabel
    after: PlanLabel
    structure: Structure
    schedules_differ: bool | None
    problem: tuple[Change, ...]
    figures_before: PlanFigures | None
    figures_after: PlanFigures | None
    notices: tuple[str, ...]

    @property
    def same(self) -> bool:
        """Whether problem, structure and schedule are the same."""
        return self.structure.same and not self.problem and not self.schedules_differ


def compare_plans(before: PlanSide, after: PlanSide) -> PlanDifference:
    """The differences between two plans. A plan without a problem is looked at on the problem of the other."""
    structure = compare_structure(before.plan, after.plan)
    changes = problem_changes(before.problem, after.problem) if before.problem and after.problem else ()
    problem = None if changes else before.problem or after.problem
    schedules = before.schedule, after.schedule
    notices = [
        f"{side.source} holds no problem; it is looked at on that of {other.source}"
        for side, other in ((before, after), (after, before))
        if side.problem is None and problem is not None
    ]
    if problem is not None:
        moves = tuple(
            replace(move, weight_bytes=weight_bytes(problem, move.operators)) for move in structure.moves
        )
        structure = replace(structure, moves=moves)
    return PlanDifference(
        before=_label(before),
        after=_label(after),
        structure=structure,
        schedules_differ=None if None in schedules else schedules[0] != schedules[1],
        problem=changes,
        figures_before=None if problem is None else plan_figures(problem, before.plan, before.schedule),
        figures_after=None if problem is None else plan_figures(problem, after.plan, after.schedule),
        notices=tuple(notices),
    )


def _label(side: PlanSide) -> PlanLabel:
    return PlanLabel(source=side.source, planner=side.planner, scheduler=side.scheduler, plan_id=digest(side.plan))
