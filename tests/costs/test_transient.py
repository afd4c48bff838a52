"""What a recomputed forward makes again is held while its operator runs backward."""

from msgspec.structs import replace

from pipebench.costs.model import CostModel
from pipebench.domain.problem import Problem
from pipebench.domain.profile import Alternative
from tests.builders import chain_problem, cluster, stages_plan


def recomputing(transient: tuple[float, ...]) -> Problem:
    """A chain whose operators may keep one byte a sample and hold these many while they run."""
    made = chain_problem([1] * 2, [1] * 2, cluster(1), saved=[50, 50], mode="sync", mini_batch=4)
    costs = made.profile.costs[0]
    operators = tuple(
        replace(
            each,
            alternatives=(
                Alternative(
                    id="again",
                    recompute=True,
                    forward_s=each.forward_s,
                    backward_s=each.backward_s,
                    parameter_bytes=0,
                    saved_bytes_per_sample=1.0,
                    transient_bytes_per_sample=held,
                ),
            ),
        )
        for each, held in zip(costs.operators, transient, strict=True)
    )
    return replace(made, profile=replace(made.profile, costs=(replace(costs, operators=operators),)))


def test_the_largest_of_a_stage_counts_once() -> None:
    problem = recomputing((49.0, 30.0))
    plan = stages_plan([[0, 1]], micro_batch=2)
    plan = replace(plan, stages=(replace(plan.stages[0], choice=("again", "again")),))
    memory = CostModel(problem).stage_memory(plan, 0, [])
    assert (memory.per_micro_batch, memory.while_live) == (4, 98)
    assert memory.peak(3) == 3 * 4 + 98
    assert memory.peak(0) == 0


def test_plain_operators_hold_nothing_besides() -> None:
    memory = CostModel(recomputing((49.0, 30.0))).stage_memory(stages_plan([[0, 1]], micro_batch=2), 0, [])
    assert (memory.per_micro_batch, memory.while_live) == (200, 0)
