"""Plans that schedulers and executors meet, each on its problem."""

from collections.abc import Sequence
from dataclasses import dataclass

from pipebench.costs.model import CostModel
from pipebench.costs.placement import lanes_in_turn
from pipebench.domain.placement import PlacementKind, pipelines_of_kind, placement_kind_of, sets_of_stages
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem, RegimeMode
from pipebench.domain.schedule import ALL_REDUCE, BACKWARD, FORWARD, FiniteSchedule, Lane
from pipebench.testing import cases
from pipebench.testing.cases import chain_edges, problem

PLAN_CASES = ("one-stage", "chain", "branches", "replicas", "round-robin", "mixed-sizes")
"""Plans with one stage on each device set. They stand in turn and in a wave of one sweep as well."""
SHARED: dict[PlacementKind, tuple[str, ...]] = {
    "in-turn": ("in-turn", "in-turn-replicas"),
    "v": ("v", "v-replicas"),
    "wave": ("v", "wave", "wave-replicas"),
    "mirrored": ("mirrored", "mirrored-replicas"),
    "listed": ("shared",),
}
"""Plans with several stages on a device set, by the placement for which they are tried."""
SWEEPS: dict[PlacementKind, int] = {"in-turn": 2, "v": 2, "wave": 4, "mirrored": 2}
"""Stages on each device set."""
PARTS = ((0, 1), (2, 3), (4,), (5,))


@dataclass(frozen=True, slots=True)
class PlanCase:
    """A problem and a valid plan of it.

    needs: the capability that it takes besides its placement, None for what everyone can.
    """

    problem: Problem
    plan: Plan
    needs: str | None = None


def plan_case(name: str, mode: RegimeMode) -> PlanCase:
    """One of CASES or of SHARED."""
    chain = cases.chain(mode)
    match name:
        case "one-stage":
            return PlanCase(chain, stages([range(6)]))
        case "branches":
            return PlanCase(cases.dag(mode), stages([(0,), (1, 2), (3, 4), (5,)]), "stage_graphs")
        case "replicas":
            return PlanCase(chain, stages([(0, 1, 2), (3, 4, 5)], sizes=(2, 2), replicas=2), "replicas")
        case "round-robin":
            return PlanCase(chain, _round_robin())
        case "shared":
            return PlanCase(chain, stages([(0, 1), (2, 3), (4, 5)], devices=(0, 1, 0)))
        case "mixed-sizes":
            return PlanCase(chain, stages([(0, 1, 2), (3, 4, 5)], sizes=(1, 2)), "per_stage_micro_batch")
        case "chain":
            return PlanCase(chain, stages(PARTS))
    kind = name.removesuffix("-replicas")
    return _placement_case(next(each for each in SWEEPS if each == kind), mode, 2 if kind != name else 1)


def _round_robin() -> Plan:
    """Three replicas in turn in front of a stage without any."""
    first = 0
    made: list[Stage] = []
    for group, count in (((0, 1, 2), 3), ((3, 4, 5), 1)):
        made.append(
            Stage(
                operators=tuple(f"op{number}" for number in group),
                devices=tuple(range(first, first + count)),
                data_parallel=count,
                micro_batch=1,
                replicas="round_robin",
            )
        )
        first += count
    return Plan(stages=tuple(made))


def _placement_case(kind: PlacementKind, mode: RegimeMode, replicas: int) -> PlanCase:
    """Eight operators in a line on device sets that each run several stages; mirrored on as many sets as fit."""
    line = problem("line", mode, 4, cases.LINE_US, chain_edges(len(cases.LINE_US)))
    pipelines = pipelines_of_kind(kind) or 1
    sets = 4 // replicas if kind == "mirrored" else 2
    count = sets * SWEEPS[kind]
    length = count // pipelines
    each = len(cases.LINE_US) // length
    groups = [range(each * number, each * number + each) for number in range(length)]
    plan = stages(
        groups * pipelines,
        sizes=(replicas,) * count,
        devices=sets_of_stages(kind, sets, count),
        replicas=replicas,
        pipelines=pipelines,
    )
    return PlanCase(line, plan, "replicas" if replicas > 1 else None)


def in_order(problem: Problem, plan: Plan) -> FiniteSchedule:
    """An order for any placement of a chain with equal micro-batches: all forwards, then all backwards.

    Forwards go by micro-batch and stage, backwards by micro-batch and from the last stage to the first; the
    all-reduces of weights in several places follow.
    """
    sets, of_stage = lanes_in_turn(plan)
    count = problem.mini_batch // (plan.stages[0].micro_batch * plan.all_pipelines)
    numbers = range(len(plan.stages))
    tasks = [(FORWARD, stage, batch) for batch in range(count) for stage in numbers]
    tasks += [(BACKWARD, stage, batch) for batch in range(count) for stage in reversed(numbers)]
    model = CostModel(problem)
    updated = [stage for stage in numbers if model.needs_update_task(plan.stages[stage], plan)]
    updated.sort(key=lambda stage: stage % plan.pipeline_length, reverse=True)
    tasks += [(ALL_REDUCE, stage, turn) for stage in updated for turn in range(plan.stages[stage].turns)]
    lanes: list[list[tuple[str, int, int]]] = [[] for _ in sets]
    for kind, stage, batch in tasks:
        lanes[of_stage[stage][batch % plan.stages[stage].turns]].append((kind, stage, batch))
    return FiniteSchedule(
        lanes=tuple(
            Lane(
                devices=plan.stages[listed[0][1]].devices_of(listed[0][2]),
                stage=tuple(stage for _, stage, _ in listed),
                micro_batch=tuple(batch for _, _, batch in listed),
                kinds="".join(kind for kind, _, _ in listed),
            )
            for listed in lanes
            if listed
        )
    )


def in_pairs(problem: Problem, plan: Plan) -> FiniteSchedule:
    """1F1B of a chain of single stages without replicas, a forward and a backward at once behind the warm-up."""
    count = problem.mini_batch // plan.stages[0].micro_batch
    lanes = []
    for position, stage in enumerate(plan.stages):
        warm = min(count, len(plan.stages) - position)
        order = [(FORWARD, batch) for batch in range(warm)]
        for batch in range(count - warm):
            order += [(FORWARD, warm + batch), (BACKWARD, batch)]
        order += [(BACKWARD, batch) for batch in range(count - warm, count)]
        lanes.append(
            Lane(
                devices=stage.devices,
                stage=(position,) * len(order),
                micro_batch=tuple(batch for _, batch in order),
                kinds="".join(kind for kind, _ in order),
                together=tuple(range(warm, 2 * count - warm, 2)),
            )
        )
    return FiniteSchedule(lanes=tuple(lanes))


def slow(mode: RegimeMode) -> PlanCase:
    """The chain with operators of a second: eight micro-batches take longer than anyone waits."""
    long = problem("slow", mode, 4, [10**6] * 6, chain_edges(6))
    return PlanCase(long, stages(PARTS))


def stages(
    groups: Sequence[Sequence[int]],
    *,
    sizes: Sequence[int] = (),
    devices: Sequence[int] = (),
    replicas: int = 1,
    pipelines: int = 1,
) -> Plan:
    """One stage for each group of operator numbers, each on devices of its own unless they are given."""
    return Plan(
        stages=tuple(
            Stage(
                operators=tuple(f"op{operator}" for operator in group),
                devices=tuple(range(device * replicas, device * replicas + replicas)),
                data_parallel=replicas,
                micro_batch=sizes[position] if sizes else 1,
            )
            for position, group in enumerate(groups)
            for device in [devices[position] if devices else position]
        ),
        placement=placement_kind_of([(device,) for device in devices or range(len(groups))], pipelines),
        pipelines=pipelines,
    )
