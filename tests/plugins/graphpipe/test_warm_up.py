"""Stages further ahead of one another: when that is tried, what it brings, where memory forbids it."""

from itertools import pairwise

import pytest

from pipebench.domain.plan import Plan
from pipebench.domain.problem import Pins, Problem
from pipebench_graphpipe import candidates
from pipebench_graphpipe.assembly import fits, with_in_flight, with_longer_warm_up
from pipebench_graphpipe.candidates import PartitionCandidate
from pipebench_graphpipe.planner import plan
from pipebench_graphpipe.plugin import GraphPipeOptions
from tests.builders import cluster, dag_problem, stages_plan
from tests.plugins.running import context, time_ns

SAVED = 10


def chain(memory: int = 10**6, tensor: int = 60) -> Problem:
    """Four operators on four devices; a tensor takes as long as a fifth of an operator."""
    return dag_problem(
        [100] * 4,
        [200] * 4,
        [(before, (after,), tensor) for before, after in pairwise(range(4))],
        cluster(4, memory, bandwidth=1e9),
        saved=[SAVED] * 4,
        mini_batch=16,
        pins=Pins(micro_batch=1, data_parallel=1),
    )


def stages() -> Plan:
    return stages_plan([[stage] for stage in range(4)])


def test_each_stage_keeps_two_more_than_the_next() -> None:
    ahead = with_longer_warm_up(chain(), stages(), 10**6)
    assert ahead is not None
    assert [stage.in_flight for stage in ahead.stages] == [7, 5, 3, 1]
    assert [stage.in_flight for stage in with_in_flight(chain(), stages()).stages] == [4, 3, 2, 1]
    assert time_ns(chain(), ahead) < time_ns(chain(), stages())


def test_one_stage_has_nobody_to_be_ahead_of() -> None:
    assert with_longer_warm_up(chain(), stages_plan([[0, 1, 2, 3]]), 10**6) is None


def test_what_does_not_fit_is_not_offered() -> None:
    problem, plain = chain(), with_in_flight(chain(), stages())
    ahead = with_in_flight(problem, stages(), 2)
    least = next(memory for memory in range(10**4) if fits(problem, plain, memory))
    roomy = next(memory for memory in range(10**4) if fits(problem, ahead, memory))
    # The second stage, with buffers on both sides, needs most: five samples for three.
    assert roomy - least == 2 * SAVED
    assert with_longer_warm_up(problem, stages(), roomy) == ahead
    assert with_longer_warm_up(problem, stages(), roomy - 1) is None


def test_the_best_variant_hides_transfers_where_memory_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    made = plan(chain(), context(GraphPipeOptions())).plan
    assert made.stages[0].in_flight > len(made.stages)
    monkeypatch.setattr(candidates, "AHEAD", 0)
    assert time_ns(chain(), made) < time_ns(chain(), plan(chain(), context(GraphPipeOptions())).plan)


def test_near_copies_of_one_plan_are_not_all_that_is_tried() -> None:
    """The three best are of one size: the best of two other sizes are tried besides."""
    made = [
        PartitionCandidate(stages(), time, size, time)
        for time, size in ((10, 8), (11, 8), (12, 8), (13, 8), (20, 4), (21, 4), (30, 2), (40, 1))
    ]
    chosen = [(each.time_ns, each.micro_batch) for each in candidates._foremost(made[::-1])]
    assert chosen == [(10, 8), (11, 8), (12, 8), (20, 4), (30, 2)]


def test_rivals_that_do_not_fit_are_left_out() -> None:
    problem = chain()
    roomy = list(candidates.rival_plans(problem, context(), 10**6))
    assert roomy
    tight = list(candidates.rival_plans(problem, context(), 4 * SAVED))
    assert len(tight) < len(roomy)
    assert all(fits(problem, made, 4 * SAVED) for made, _ in tight)
    assert all(time == time_ns(problem, made) for made, time in roomy)
