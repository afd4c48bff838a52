"""Micro-batch sizes and kFkB by stage, where limits leave one plan: each way a stage may reach into a fork."""

import random

import msgspec
import numpy as np
import pytest

from pipebench.algorithms.in_flight import in_flight
from pipebench.costs.messages import stage_edges
from pipebench_graphpipe.mixed_configs import NEVER
from pipebench_graphpipe.mixed_search import MixedFeasibility
from tests.nightly import mostly_at_night
from tests.plugins.graphpipe.all_partitions import plan_of_cut, work_of
from tests.plugins.graphpipe.instances import problem_on
from tests.plugins.graphpipe.test_mixed import configs_of, searched
from tests.plugins.graphpipe.test_stage_costs import sets_of


def _heaviest_first(work: dict[int, float], operators: int) -> bool:
    """Whether the branches between the first and the last operator come in the order of their work."""
    along = [work[operator] for operator in range(1, operators - 1)]
    return along == sorted(along, reverse=True)


K22 = [(0, 2), (0, 3), (1, 2), (1, 3), (2, 4), (3, 4)]
UNEVEN = [(0, 1), (1, 2), (2, 4), (0, 3), (3, 4)]
THREE = [(0, 1), (0, 2), (0, 3), (1, 4), (2, 4), (3, 4)]
FOUR = [(0, 1), (0, 2), (0, 3), (0, 4), (1, 5), (2, 5), (3, 5), (4, 5)]
CUTS: dict[str, tuple[list[tuple[int, int]], list[list[int]]]] = {
    "a fork after a fork": (K22, [[0], [1], [2], [3], [4]]),
    "two branches": (UNEVEN, [[0], [1], [2], [3], [4]]),
    "loose ends": ([(0, 1), (2, 3), (2, 4)], [[0], [1], [2], [3], [4]]),
    "a run of branches": (THREE, [[0], [1], [2, 3], [4]]),
    "two runs of branches": (FOUR, [[0], [1, 2], [3, 4], [5]]),
    "an owner of the join": (UNEVEN, [[0], [1], [2, 4], [3]]),
    "an owner of the join and a branch": (UNEVEN, [[0], [1], [2, 3, 4]]),
    "an end that takes a branch along": (UNEVEN, [[0], [1], [2, 3], [4]]),
    "an owner of the fork": (UNEVEN, [[0, 1], [2], [3], [4]]),
    "an owner of the fork and a branch": (UNEVEN, [[0, 1, 3], [2], [4]]),
    "owners of both ends": (UNEVEN, [[0, 3], [1], [2, 4]]),
    "one owner of both ends": ([(0, 1), (1, 2), (2, 3), (0, 4), (3, 5), (4, 5)], [[0, 1], [2], [3, 5], [4]]),
    "branches before the join": (THREE, [[0], [1], [2, 3, 4]]),
    "branches behind the fork": (THREE, [[0, 2, 3], [1], [4]]),
}


@pytest.mark.parametrize(("edges", "cut"), CUTS.values(), ids=CUTS)
@pytest.mark.parametrize("seed", mostly_at_night(range(6), range(2)))
def test_where_one_plan_alone_is_allowed_it_is_found(
    seed: int, edges: list[tuple[int, int]], cut: list[list[int]]
) -> None:
    """Every stage has one configuration, a device, and room for what the in-flight rule asks; with less: nothing.

    The space has no others: of three branches the two lightest go together, and stages that come first behind a
    fork that follows a fork have one configuration.
    """
    rng = random.Random(seed)
    operators = max(map(max, cut)) + 1
    problem = problem_on(rng, operators, edges, len(cut), 10**6)
    while edges in (THREE, FOUR) and not _heaviest_first(work_of(problem), operators):
        problem = problem_on(rng, operators, edges, len(cut), 10**6)
    search = searched(problem)
    configs = configs_of(search, (1, 2, 4), (1, 2))
    drawn = [rng.randrange(configs.count) for _ in cut]
    if edges is K22:
        drawn[3] = drawn[2]
    sizes = [configs.costs[config].micro_batch for config in drawn]
    kept = in_flight(
        sizes,
        [configs.k[config] for config in drawn],
        stage_edges(problem.profile.graph, plan_of_cut(problem, [*map(frozenset, cut)], [1] * len(cut), 1)),
        problem.mini_batch,
    )

    def found(rooms: list[int]) -> MixedFeasibility | None:
        limits = [np.zeros((search.slots, len(costs.replicas)), np.int64) for costs in configs.costs]
        for slot, operators in sets_of(search._program):
            if sorted(operators) in cut:
                stage = cut.index(sorted(operators))
                limits[drawn[stage]][slot, 0] = rooms[stage]
        question = MixedFeasibility(configs, limits, len(cut))
        return question if question.stages(search.chain) is not None else None

    question = found(kept)
    assert question is not None
    stages = question.stages(search.chain)
    assert stages is not None
    assert {tuple(sorted(stage.operators)): stage.config for stage in stages} == {
        tuple(group): config for group, config in zip(cut, drawn, strict=True)
    }
    need = question.behind(search.chain, configs.nothing_behind()).table.needs[configs.count, 0, -1]
    assert need == max(kept)
    for stage, size in enumerate(sizes):
        assert found([room - size * (at == stage) for at, room in enumerate(kept)]) is None


def test_branches_ask_for_what_stands_behind_them() -> None:
    """0 and 1 meet 2, then comes 3. One stage of 2 and 3 would be shallower, but takes all four devices."""
    problem = problem_on(random.Random(0), 4, [(0, 2), (1, 2), (2, 3)], 4, 10**6)
    search = searched(msgspec.structs.replace(problem, mini_batch=64))
    configs = configs_of(search, (4,), (1,))
    limits = np.zeros((search.slots, len(configs.costs[0].replicas)), np.int64)
    for slot, operators in sets_of(search._program):
        if len(operators) == 1:
            limits[slot, 0] = NEVER
        if operators == {2, 3}:
            limits[slot, configs.costs[0].replicas.index(4)] = NEVER
    question = MixedFeasibility(configs, [limits], 4)
    solved = question.behind(search.chain, configs.nothing_behind())
    assert solved.table.needs[configs.count, 0, -1] == 3 * 4
