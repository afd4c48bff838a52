"""Pipelines of equal stages from a few numbers."""

import pytest

from pipebench.domain.errors import PipebenchError
from pipebench.simulation.simulate import simulate
from pipebench.simulation.synthetic import synthetic
from tests.simulation.schedules import gpipe_schedule, one_f_one_b_schedule

NS = 10**9


def test_the_figures_are_those_asked_for() -> None:
    problem, plan = synthetic(4, 8, forward_s=1.0, backward_s=2.0)
    trace = simulate(problem, plan, one_f_one_b_schedule(problem, plan))
    assert trace.total_ns == (8 + 3) * 3 * NS
    assert [timeline.peak_bytes for timeline in trace.memory] == [4, 3, 2, 1]
    trace = simulate(problem, plan, gpipe_schedule(problem, plan))
    assert [timeline.peak_bytes for timeline in trace.memory] == [8] * 4


def test_transfers_and_split_backwards() -> None:
    problem, plan = synthetic(2, 1, forward_s=0.5, backward_s=0.75, transfer_s=0.25, weight_gradient_s=0.5)
    trace = simulate(problem, plan, gpipe_schedule(problem, plan))
    assert trace.total_ns == 3 * NS
    assert trace.transfer_start_ns == (NS // 2, 2 * NS)
    assert problem.profile.costs[0].operators[0].weight_gradient_s == (0.5,)
    assert synthetic(2, 1, mode="async")[0].regime.mode == "async"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"stages": 0, "micro_batches": 1}, "0 stages"),
        ({"stages": 1, "micro_batches": 0}, "0 micro-batches"),
        ({"stages": 1, "micro_batches": 1, "forward_s": -1.0}, "forward_s"),
        ({"stages": 1, "micro_batches": 1, "transfer_s": float("nan")}, "transfer of nan"),
    ],
)
def test_nonsense_is_refused(arguments: dict[str, float], message: str) -> None:
    with pytest.raises(PipebenchError, match=message):
        synthetic(**arguments)
