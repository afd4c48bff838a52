"""variant=best: never behind a planner whose plans lie in the class, under the best of the schedulers."""

import random

import pytest
from msgspec.structs import replace

from pipebench.check import check_schedule
from pipebench.domain.errors import PipebenchError
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.simulation.simulate import simulate
from pipebench_graphpipe.candidates import RIVALS, SCHEDULERS, WIDE_RIVALS
from tests.acceptance.tight_graphs import tight_graph
from tests.builders import cluster, dag_problem
from tests.nightly import mostly_at_night
from tests.plugins.running import services


def drawn(seed: int) -> Problem:
    """A small graph on which weights are costly to reduce and memory is short on every other seed."""
    draw = random.Random(seed)
    operators = draw.randint(6, 12)
    edges: dict[int, list[int]] = {}
    for later in range(1, operators):
        for earlier in draw.sample(range(later), min(later, draw.choice((1, 1, 2)))):
            edges.setdefault(earlier, []).append(later)
    return dag_problem(
        [draw.randint(1000, 30000) for _ in range(operators)],
        [draw.randint(2000, 60000) for _ in range(operators)],
        [(earlier, later, draw.randint(100, 5000)) for earlier, later in edges.items()],
        cluster(draw.choice((4, 8)), memory=draw.choice((10**9, 6 * 10**6))),
        weights=[draw.randint(10**5, 10**6) for _ in range(operators)],
        saved=[draw.randint(10**3, 10**5) for _ in range(operators)],
        mini_batch=16,
        micro_batches=(1, 2, 4, 8),
    )


def least_ns(problem: Problem, plan: Plan) -> int | None:
    """Of a mini-batch under the best scheduler whose order fits."""
    free = replace(plan, stages=tuple(replace(stage, in_flight=0) for stage in plan.stages))
    found = []
    for name, each in (("1f1b", plan), *((name, free) for name in SCHEDULERS)):
        try:
            schedule = services().schedule(name, problem, each)
        except PipebenchError:
            continue
        if check_schedule(problem, each, schedule).status == "valid":
            found.append(simulate(problem, each, schedule).total_ns)
    return min(found, default=None)


SMALL = [f"drawn-{seed}" for seed in range(12)] + [f"tight-{seed}" for seed in range(50)]


@pytest.mark.parametrize(
    "case", mostly_at_night(SMALL, [*SMALL[:4], "tight-9", "tight-11", "tight-13", "tight-14"])
)
def test_no_rival_is_faster_and_none_fits_alone(case: str) -> None:
    kind, _, seed = case.partition("-")
    problem = drawn(int(seed)) if kind == "drawn" else tight_graph(int(seed))
    times = {}
    for name in ("graphpipe[variant=best]", *RIVALS, *WIDE_RIVALS):
        try:
            times[name] = least_ns(problem, services().plan(name, problem).plan)
        except PipebenchError:
            times[name] = None
    own = times.pop("graphpipe[variant=best]")
    rivals = [each for each in times.values() if each is not None]
    assert own is not None or not rivals
    assert own is None or all(own <= each for each in rivals), times
