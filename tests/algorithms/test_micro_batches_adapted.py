"""A partition made without a flush gets a micro-batch that suits one with a flush."""

import msgspec
import pytest

from pipebench.algorithms.micro_batches_adapted import adapt_micro_batch
from pipebench.check import check_schedule
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Pins, Problem
from tests.builders import cluster, dag_problem, stages_plan
from tests.plugins.running import context, scheduled, time_ns

GROUPS = [[0], [1], [2], [3]]


def chain(memory: int = 10**9, sizes: tuple[int, ...] = (16,), **pins: int) -> Problem:
    return dag_problem(
        [10] * 4,
        [20] * 4,
        [(0, (1,), 1), (1, (2,), 1), (2, (3,), 1)],
        cluster(4, memory),
        saved=[5] * 4,
        mini_batch=16,
        micro_batches=sizes,
        pins=Pins(**pins),  # type: ignore[arg-type]
    )


def at(size: int) -> Plan:
    return stages_plan(GROUPS, micro_batch=size)


def test_a_mini_batch_in_one_piece_is_cut_into_the_best_pieces() -> None:
    problem = chain()
    made = adapt_micro_batch(problem, at(16), context())
    times = {size: time_ns(problem, at(size)) for size in (1, 2, 4, 8, 16)}
    assert time_ns(problem, made) == min(times.values())
    assert times[16] > 1.5 * min(times.values())
    assert [stage.operators for stage in made.stages] == [stage.operators for stage in at(16).stages]


def test_it_fits_in_memory_where_a_size_does() -> None:
    for memory in (25, 40, 60, 100, 400):
        problem = chain(memory)
        made = adapt_micro_batch(problem, at(16), context())
        verdict = check_schedule(problem, made, scheduled(problem, made)).status
        fitting = [
            size
            for size in (1, 2, 4, 8, 16)
            if check_schedule(problem, at(size), scheduled(problem, at(size))).status == "valid"
        ]
        assert (verdict == "valid") == bool(fitting)
        if fitting:
            assert time_ns(problem, made) == min(time_ns(problem, at(size)) for size in fitting)


@pytest.mark.parametrize("size", [2, 8])
def test_a_pinned_micro_batch_stays(size: int) -> None:
    made = adapt_micro_batch(chain(micro_batch=size), at(size), context())
    assert {stage.micro_batch for stage in made.stages} == {size}


def test_replicas_keep_a_sample_each_and_nothing_stays_in_flight() -> None:
    plan = stages_plan([[0, 1], [2, 3]], micro_batch=16, replicas=[1, 3])
    plan = msgspec.structs.replace(
        plan, stages=tuple(msgspec.structs.replace(stage, in_flight=16) for stage in plan.stages)
    )
    made = adapt_micro_batch(chain(), plan, context())
    assert made.stages[0].micro_batch >= 3
    assert [stage.in_flight for stage in made.stages] == [0, 0]


def test_several_sizes_stay() -> None:
    first, *others = at(4).stages
    mixed = Plan(stages=(msgspec.structs.replace(first, micro_batch=8), *others))
    assert adapt_micro_batch(chain(), mixed, context()) == mixed
