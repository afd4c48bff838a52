"""Times of a stage: no split beside an alternative; an alternative's weight gradient is in proportion."""

import msgspec
import pytest

from pipebench.costs.model import CostModel
from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.profile import Alternative
from tests.builders import chain_problem, cluster, stages_plan


def test_a_split_operator_has_no_alternative_besides() -> None:
    problem = with_alternative(4, 2, 3)
    whole = stages_plan([[0]], micro_batch=1).stages[0]
    stage = msgspec.structs.replace(whole, devices=(0, 1), tensor_parallel=2, micro_batch=2)
    stage = msgspec.structs.replace(stage, sharding=({"batch": 2},), choice=("other",))
    plan, model = Plan(stages=(stage,)), CostModel(problem)
    with pytest.raises(UnsupportedProblem, match=r"op0.*split over devices and runs by alternative 'other'"):
        model.stage_times(stage, plan)
    with pytest.raises(UnsupportedProblem, match="runs by alternative"):
        model.stage_memory(plan, 0, [])
    unsplit = msgspec.structs.replace(whole, sharding=({"batch": 1},))
    assert model.stage_times(unsplit) == model.stage_times(whole)


def with_alternative(backward: int, weight: int, other: int) -> Problem:
    """One operator; its backward and weight gradient in ns, and the backward of its alternative."""
    problem = chain_problem([1], [backward], cluster(1), mode="sync")
    way = Alternative(
        id="other", forward_s=(3e-9,), backward_s=(other / 1e9,), parameter_bytes=0, saved_bytes_per_sample=0.0
    )
    costs = problem.profile.costs[0]
    each = msgspec.structs.replace(costs.operators[0], weight_gradient_s=(weight / 1e9,), alternatives=(way,))
    profile = msgspec.structs.replace(problem.profile, costs=(msgspec.structs.replace(costs, operators=(each,)),))
    return msgspec.structs.replace(problem, profile=profile)


@pytest.mark.parametrize(
    ("backward", "weight", "other", "expected"),
    [
        (100, 40, 50, 20),
        (100, 40, 150, 60),
        (10, 5, 5, 2),
        (10, 5, 7, 4),
        (4, 4, 3, 3),
        (0, 0, 9, 0),
    ],
)
def test_the_weight_gradient_of_an_alternative_is_in_proportion(
    backward: int, weight: int, other: int, expected: int
) -> None:
    """Half-even: 5 x 5 / 10 = 2.5 is 2, 5 x 7 / 10 = 3.5 is 4; never above the backward."""
    model = CostModel(with_alternative(backward, weight, other))
    plain = stages_plan([[0]]).stages[0]
    assert model.stage_times(plain).weight_gradient == min(weight, backward)
    times = model.stage_times(msgspec.structs.replace(plain, choice=("other",)))
    assert (times.forward, times.backward, times.weight_gradient) == (3, other, expected)
