"""Two plans side by side: structure always, costs where they solve the same problem."""

from collections.abc import Iterator

from msgspec import UNSET
from msgspec.structs import replace

from pipebench.bench.difference.operands import PlanSide
from pipebench.bench.difference.structure import Change, Figure, Structure, compare_structure
from pipebench.bench.score import judge
from pipebench.check import check_plan, require_ordered
from pipebench.costs.estimate import estimate
from pipebench.costs.model import CostModel
from pipebench.costs.quantise import NS_PER_S
from pipebench.domain.errors import PipebenchError
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.profile import Provenance
from pipebench.domain.schedule import Schedule
from pipebench.domain.value import Value, digest
from pipebench.domain.verdict import Fit
from pipebench.simulation.step_time import mini_batch_s


class StageFigures(Value, frozen=True, kw_only=True):
    """One stage. forward_ns, backward_ns: of one micro-batch. Bytes on each of its devices: weights, all that is
    held whatever runs (weight versions, gradients, optimizer state, async buffers), and what each live
    micro-batch adds.
    """

    forward_ns: int
    backward_ns: int
    weight_bytes: int
    held_bytes: int
    micro_batch_bytes: int


class PlanFigures(Value, frozen=True, kw_only=True):
    """A plan on its problem, seconds for one mini-batch.

    status: of the check; trouble: what it found. simulated_s, peak_bytes (for each device id) and fit
    need a schedule.
    """

    status: str
    trouble: str = ""
    estimated_s: float | None = None
    simulated_s: float | None = None
    fit: Fit | None = None
    peak_bytes: dict[int, int] = {}
    stages: tuple[StageFigures, ...] = ()


def plan_figures(problem: Problem, plan: Plan, schedule: Schedule | None) -> PlanFigures:
    """The figures; an invalid plan has a status and a reason instead, one that is only too large has both."""
    verdict = check_plan(problem, plan)
    if verdict.status != "valid":
        return PlanFigures(
            status=verdict.status, trouble=verdict.witness.message if verdict.witness else verdict.reason
        )
    if schedule is not None:
        verdict = judge(problem, plan, schedule)
    trouble = verdict.witness.message if verdict.witness else verdict.reason
    simulated_s = None
    if schedule is not None:
        try:
            require_ordered(problem, plan, schedule)
            simulated_s = mini_batch_s(problem, plan, schedule)
        except PipebenchError as error:
            trouble = trouble or str(error)
    return PlanFigures(
        status=verdict.status,
        trouble=trouble,
        estimated_s=estimate(problem, plan) / NS_PER_S,
        simulated_s=simulated_s,
        fit=verdict.fit,
        peak_bytes=verdict.peak_bytes,
        stages=_stages(problem, plan),
    )


def weight_bytes(problem: Problem, operators: tuple[str, ...]) -> int:
    """Bytes of the parameters that the operators use, each once."""
    graph = problem.profile.graph
    names = {
        name
        for operator in operators
        if operator in graph.index
        for name in graph.operators[graph.index[operator]].parameters
    }
    return sum(graph.parameter_bytes[name] for name in names)


def _stages(problem: Problem, plan: Plan) -> tuple[StageFigures, ...]:
    model = CostModel(problem)
    edges = model.messages(plan)
    found = []
    for position, stage in enumerate(plan.stages):
        times, memory = model.stage_times(stage, plan), model.stage_memory(plan, position, edges)
        found.append(
            StageFigures(
                forward_ns=times.forward,
                backward_ns=times.backward,
                weight_bytes=model.parameter_bytes(stage),
                held_bytes=memory.held,
                micro_batch_bytes=memory.per_micro_batch,
            )
        )
    return tuple(found)


def problem_changes(before: Problem, after: Problem) -> tuple[Change, ...]:
    """The fields that differ, empty for the same problem (whoever measured its profile).

    Profiles and clusters with the same name, size and memory but other figures show the head of a hash.
    """
    return () if before.problem_id == after.problem_id else tuple(_changes(before, after))


def _changes(before: Problem, after: Problem) -> Iterator[Change]:
    profiles = [replace(problem.profile, provenance=Provenance()) for problem in (before, after)]
    clusters = [before.cluster, after.cluster]
    yield from _change("profile", before.profile.name, after.profile.name)
    yield from _figures("profile", profiles[0], profiles[1], before.profile.name == after.profile.name)
    told = list(_change("cluster", *(cluster.name for cluster in clusters)))
    told += _change("devices", *(cluster.accelerators for cluster in clusters))
    told += _change("memory_bytes", *(cluster.memory_bytes for cluster in clusters))
    yield from told
    yield from _figures("cluster", clusters[0], clusters[1], not told)
    for name in Problem.__struct_fields__:
        if name not in ("profile", "cluster", "regime", "pins"):
            yield from _change(name, getattr(before, name), getattr(after, name))
    for name in before.regime.__struct_fields__:
        figures = (getattr(problem.regime, name) for problem in (before, after))
        yield from _change(f"regime {name}", *(1 if each is UNSET else each for each in figures))
    for name in before.pins.__struct_fields__:
        yield from _change(f"pin {name}", getattr(before.pins, name), getattr(after.pins, name))


def _change(field: str, before: Figure, after: Figure) -> Iterator[Change]:
    if before != after:
        yield Change(field=field, before=before, after=after)


def _figures(what: str, before: Value, after: Value, silent: bool) -> Iterator[Change]:
    """Nothing else told them apart, yet they differ."""
    if silent and before != after:
        yield Change(field=f"{what} figures", before=digest(before)[:12], after=digest(after)[:12])


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
