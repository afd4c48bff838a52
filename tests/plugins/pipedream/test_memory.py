"""The three readings of PipeDream's memory estimate: enumeration, and the figures of a study of MadPipe."""

from collections.abc import Iterator
from itertools import combinations, pairwise, product

import pytest

from pipebench.costs.shapes.rescale import scale_profile
from pipebench.domain.cluster import Cluster
from pipebench.domain.errors import InfeasibleProblem, UnsupportedProblem
from pipebench.domain.plan import ReplicaMode
from pipebench.domain.problem import Pins, Problem, Regime
from pipebench.formats.clusters import load_cluster
from pipebench.formats.profiles.files import read_profile
from pipebench_pipedream.intervals import IntervalCosts
from pipebench_pipedream.partition import IntervalSearch
from pipebench_pipedream.planner import plan as pipedream
from pipebench_pipedream.planner import replica_choices
from pipebench_pipedream.plugin import MemoryReading, PipeDreamPlannerOptions, pipebench_planners
from tests.builders import chain_problem, cluster
from tests.plugins.pipedream.brute_force import random_problem, stage_costs
from tests.plugins.running import context, scheduled
from tests.shared_data import shared_data

READINGS: tuple[MemoryReading, ...] = ("p", "decreasing", "released")


def every_estimate(
    problem: Problem, micro_batch: int, reading: MemoryReading, shared: ReplicaMode
) -> Iterator[tuple[int, int]]:
    """Bottleneck and the largest estimate of a stage, of every partition of an async problem."""
    places, devices = len(problem.profile.graph.operators), problem.cluster.size
    counts = replica_choices(problem, micro_batch, mode=shared)
    for stages in range(1, min(places, devices) + 1):
        for cuts in combinations(range(1, places), stages - 1):
            groups = [tuple(range(a, b)) for a, b in pairwise((0, *cuts, places))]
            for replicas in product(counts, repeat=stages):
                if sum(replicas) <= devices:
                    costed = stage_costs(problem, groups, replicas, micro_batch, shared)
                    behind = [sum(replicas[position:]) for position in range(stages)]
                    estimates = []
                    for position, memory in enumerate(costed.memory):
                        d = replicas[position]
                        if reading == "released":
                            each = memory.per_micro_batch + weights(problem, groups[position])
                            estimates.append(-(-(behind[position] - d) // d) * each)
                        else:
                            estimates.append(
                                memory.peak(-(-(devices if reading == "p" else behind[position]) // d))
                            )
                    yield costed.bottleneck_ns, max(estimates)


def weights(problem: Problem, group: tuple[int, ...]) -> int:
    graph = problem.profile.graph
    names = {name for operator in group for name in graph.operators[operator].parameters}
    return sum(graph.parameter_bytes[name] for name in names)


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("shared", ["round_robin", "split"])
@pytest.mark.parametrize("seed", range(10))
def test_the_search_equals_enumeration_under_every_reading(
    seed: int, shared: ReplicaMode, reading: MemoryReading
) -> None:
    micro_batch = 1 + seed % 3
    problem = random_problem(seed, "async", 2 + seed % 3, micro_batch)
    plans = list(every_estimate(problem, micro_batch, reading, shared))
    order = range(len(problem.profile.graph.operators))
    costs = IntervalCosts(problem, order, replica_choices(problem, micro_batch, mode=shared), shared)
    least, most = min(estimate for _, estimate in plans), max(estimate for _, estimate in plans)
    for limit in (least - 1, least, (3 * least + most) // 4, (least + most) // 2, most):
        if limit < 0:
            continue
        best = min((period for period, estimate in plans if estimate <= limit), default=None)
        for form in ("k", "bs"):
            found, _, _ = IntervalSearch(costs, micro_batch, limit, problem.cluster.size, memory=reading).run(form)
            assert (found.bottleneck_ns if found else None) == best


def test_three_stages_by_hand() -> None:
    """Stages of 10 weights and 4 saved, no buffers: 30 + 4 g bytes, or 14 for each device behind."""
    problem = chain_problem([5] * 3, [5] * 3, cluster(3), weights=[10] * 3, saved=[4] * 3, activations=[0] * 4)
    least = {}
    for reading in READINGS:
        costs = IntervalCosts(problem, range(3), (1,))
        fits = [
            limit
            for limit in range(100)
            if (found := IntervalSearch(costs, 1, limit, 3, memory=reading).run("k")[0]) and len(found.ends) == 3
        ]
        least[reading] = fits[0]
    assert least == {"p": 30 + 3 * 4, "decreasing": 30 + 3 * 4, "released": 2 * 14}
    two_of_three = chain_problem(
        [5] * 2, [5] * 2, cluster(3), weights=[10] * 2, saved=[4] * 2, activations=[0] * 3
    )
    costs = IntervalCosts(two_of_three, range(2), (1,))
    assert IntervalSearch(costs, 1, 41, 3, memory="p").run("k")[0] is None
    found = IntervalSearch(costs, 1, 38, 3, memory="decreasing").run("k")[0]
    assert found is not None


def test_a_row_says_which_reading_it_is() -> None:
    problem = chain_problem([5] * 3, [5] * 3, cluster(3))
    for reading in READINGS:
        notices = pipedream(problem, context(PipeDreamPlannerOptions(memory=reading))).notices
        assert sum(f"`{reading}`" in notice for notice in notices) == 1


def test_info_explains_every_reading() -> None:
    (planner,) = pipebench_planners()
    for reading in READINGS:
        assert any(f"memory={reading}" in deviation for deviation in planner.deviations)


def test_sync_has_one_reading() -> None:
    problem = chain_problem([5] * 3, [5] * 3, cluster(3), mode="sync")
    for reading in ("p", "released"):
        with pytest.raises(UnsupportedProblem, match=reading):
            pipedream(problem, context(PipeDreamPlannerOptions(memory=reading)))
    assert not any("estimate" in n for n in pipedream(problem, context(PipeDreamPlannerOptions())).notices)


def test_what_cannot_be_scheduled_keeps_its_claim() -> None:
    """The released estimate takes the last stage as free: 14 bytes for the first, which in truth needs 38."""
    problem = chain_problem([5] * 2, [5] * 2, cluster(2, 30), weights=[10] * 2, saved=[4] * 2, activations=[0] * 3)
    with pytest.raises(InfeasibleProblem, match="estimate is too low") as raised:
        pipedream(problem, context(PipeDreamPlannerOptions(memory="released")))
    assert raised.value.claimed_s == pytest.approx(10e-9)


def measured(devices: int, gigabytes: int) -> Problem:
    """PipeDream's resnet50 at 1000 x 1000 and batch 8, 12 GB/s."""
    profile = read_profile(shared_data("pipedream/resnet50.txt").as_posix(), {"saved": "boundary"})
    return Problem(
        profile=scale_profile(profile, (1000 / 224) ** 2),
        cluster=_cluster(devices, gigabytes, profile.device_types[0]),
        mini_batch=8,
        regime=Regime(mode="async"),
        pins=Pins(micro_batch=8, data_parallel=1),
    )


def _cluster(devices: int, gigabytes: int, kind: str) -> Cluster:
    return load_cluster("madpipe", devices=devices, memory=f"{gigabytes}GB", device_type=kind)


@pytest.mark.parametrize(
    ("devices", "gigabytes", "decreasing", "released"),
    [
        (2, 8, 424.1, 595.0),
        (2, 12, 298.2, 595.0),
        (4, 6, None, 579.0),
        (4, 12, 189.7, 297.2),
        (8, 6, 275.9, 270.0),
        (8, 8, 173.0, 253.8),
        (8, 12, 163.9, 184.2),
    ],
)
def test_periods_on_the_measured_resnet50(
    devices: int, gigabytes: int, decreasing: float | None, released: float
) -> None:
    """Columns `E1+1F1B*` and `E2+1F1B*` of an independent study, in ms, to the last digit that it gives."""
    problem = measured(devices, gigabytes)
    for reading, expected in (("decreasing", decreasing), ("released", released)):
        try:
            plan = pipedream(problem, context(PipeDreamPlannerOptions(memory=reading))).plan  # type: ignore[arg-type]
        except InfeasibleProblem:
            assert expected is None
        else:
            assert round(scheduled(problem, plan).period_ns / 1e6, 1) == expected  # type: ignore[union-attr]
