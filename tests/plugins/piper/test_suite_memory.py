"""memory=suite: where some plan of Piper's class fits by the suite's memory, one is found that does."""

from itertools import product

import pytest
from msgspec.structs import replace

from pipebench.check import check_plan, check_schedule
from pipebench.costs.model import CostModel
from pipebench.domain.errors import InfeasibleProblem
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem
from pipebench_piper.planner import plan as piper
from pipebench_piper.planner import without_deadlock
from pipebench_piper.plugin import PiperPlannerOptions
from tests.plugins.piper.test_brute_force import partitions, random_problem
from tests.plugins.running import context, scheduled

Way = tuple[int, int]
"""Tensor-parallel and data-parallel degree of a stage."""


def stages_of(problem: Problem, parts: list[list[int]], ways: tuple[Way, ...]) -> list[Stage]:
    """Stages without choices, with what Piper keeps in flight: the sum of the degrees from the stage on."""
    names = [operator.name for operator in problem.profile.graph.operators]
    behind = [sum(d for _, d in ways[at:]) for at in range(len(ways))]
    sizes = [d for _, d in ways]
    kept = without_deadlock(sizes, [-(-total // d) * d for total, d in zip(behind, sizes, strict=True)])
    found, first = [], 0
    for part, (t, d), samples in zip(parts, ways, kept, strict=True):
        found.append(
            Stage(
                operators=tuple(names[node] for node in part),
                devices=tuple(range(first, first + t * d)),
                data_parallel=d,
                tensor_parallel=t,
                micro_batch=d,
                in_flight=min(samples, problem.mini_batch),
                choice=tuple(f"{t}a" for _ in part),
            )
        )
        first += t * d
    return found


def least_peak(model: CostModel, plan: Plan, position: int) -> int:
    """Over all choices of the stage's operators: what others choose does not matter to it."""
    stage = plan.stages[position]
    edges = model.messages(plan)
    peaks = []
    for kinds in product("ab", repeat=len(stage.operators)):
        choice = tuple(f"{stage.tensor_parallel}{kind}" for kind in kinds)
        stages = [replace(s, choice=choice) if at == position else s for at, s in enumerate(plan.stages)]
        made = replace(plan, stages=tuple(stages))
        peaks.append(model.stage_memory(made, position, edges).peak(stage.in_flight // stage.micro_batch))
    return min(peaks)


def something_fits(problem: Problem) -> bool:
    devices, batch = problem.cluster.size, problem.mini_batch
    model = CostModel(problem)
    degrees = [(t, d) for t in (1, 2) for d in range(1, devices + 1) if batch % d == 0 and t * d <= devices]
    for parts in partitions(problem):
        for ways in product(degrees, repeat=len(parts)):
            if sum(t * d for t, d in ways) > devices or sum(d for _, d in ways) > batch:
                continue
            stages = stages_of(problem, parts, ways)
            plan = Plan(stages=tuple(stages), order_edges=tuple((i, i + 1) for i in range(len(stages) - 1)))
            if all(
                least_peak(model, plan, position) <= problem.cluster.memory_bytes
                for position in range(len(stages))
            ):
                return True
    return False


@pytest.mark.parametrize("seed", range(100))
def test_a_plan_is_found_where_one_fits(seed: int) -> None:
    problem = random_problem(seed)
    if not something_fits(problem):
        with pytest.raises(InfeasibleProblem):
            piper(problem, context(PiperPlannerOptions()))
        return
    found = piper(problem, context(PiperPlannerOptions()))
    assert check_plan(problem, found.plan).status == "valid"
    verdict = check_schedule(problem, found.plan, scheduled(problem, found.plan))
    assert (verdict.status, verdict.witness) == ("valid", None)
    free = piper(problem, context(PiperPlannerOptions(memory="piper")))
    assert found.claimed_native is not None
    assert free.claimed_native is not None
    if found.termination == "optimal":
        assert found.claimed_native == pytest.approx(free.claimed_native, rel=1e-8)
    else:
        assert found.claimed_native >= free.claimed_native * (1 - 1e-8)
