"""Micro-batch sizes and kFkB by stage: the DP against all plans of its space, and the planner's options."""

import random
from itertools import product

import numpy as np
import pytest

from pipebench.algorithms.in_flight import in_flight
from pipebench.check import check_schedule
from pipebench.costs.messages import stage_edges
from pipebench.costs.model import CostModel
from pipebench.domain.errors import InfeasibleProblem, InvalidValue
from pipebench.domain.problem import Problem
from pipebench.hooks.context import Context
from pipebench_graphpipe import candidates
from pipebench_graphpipe.assembly import Draft, assemble_plan
from pipebench_graphpipe.mixed_configs import NEVER, Configs, MixedStage, all_configs
from pipebench_graphpipe.mixed_search import MixedFeasibility, mixed_drafts
from pipebench_graphpipe.planner import plan
from pipebench_graphpipe.plugin import GraphPipeOptions
from pipebench_graphpipe.search import GraphPipeSearch
from pipebench_graphpipe.series_parallel import leaves
from tests.nightly import mostly_at_night
from tests.plugins.graphpipe.all_partitions import Cut, Space, cuts, depths, period_ns, plan_of_cut, work_of
from tests.plugins.graphpipe.instances import problem_on, random_series_parallel
from tests.plugins.running import context, scheduled, time_ns

UNREACHED = 1 << 29


def searched(problem: Problem) -> GraphPipeSearch:
    return GraphPipeSearch(problem, GraphPipeOptions(), Context(options=GraphPipeOptions()))


def configs_of(search: GraphPipeSearch, sizes: tuple[int, ...], ks: tuple[int, ...]) -> Configs:
    return all_configs([search.costs(size) for size in sizes], ks, search.problem.mini_batch)


def least_need(
    search: GraphPipeSearch, configs: Configs, memory: int, sample_ns: float
) -> tuple[int | None, list[MixedStage]]:
    """In-flight of the stages that come first, at least; and the stages that do it."""
    question = MixedFeasibility(configs, configs.limits(memory, sample_ns), search.problem.cluster.size)
    stages = question.stages(search.chain)
    if stages is None:
        return None, []
    solved = question.behind(search.chain, configs.nothing_behind())
    return int(solved.table.needs[configs.count, 0, -1]), stages


@pytest.mark.parametrize("seed", mostly_at_night(range(60), range(15)))
def test_with_one_configuration_it_is_the_plain_search(seed: int) -> None:
    rng = random.Random(seed)
    count = rng.randint(4, 12)
    edges, memory = random_series_parallel(rng, count), rng.choice((150, 250, 400, 10**6))
    problem = problem_on(rng, count, edges, 4, memory, alike=seed % 3 == 0)
    search, size = searched(problem), rng.choice((1, 2, 4))
    free = search._target_search(size, memory).within(None)
    for factor in (1.2, 0.8, 0.6, 0.5):
        longest = 400 * size if free is None else free.partition.bottleneck_ns
        target = int(longest * factor)
        plain = search._target_search(size, memory).within(target)
        need, stages = least_need(search, configs_of(search, (size,), (1,)), memory, target / size)
        assert (plain is None) == (need is None)
        if plain is not None:
            depth = int(plain.solved.at(0)[-1])
            assert need == min(depth * size, problem.mini_batch)
            assert sorted(o for stage in stages for o in stage.operators) == list(range(count))


def assert_samples_follow_the_rule(problem: Problem, configs: Configs, stages: list[MixedStage]) -> None:
    """No stage was planned with less in flight than the rule gives it among the others."""
    if stages:
        made = plan_of_cut(problem, [frozenset(stage.operators) for stage in stages], [1] * len(stages), 1)
        kept = in_flight(
            [configs.costs[stage.config].micro_batch for stage in stages],
            [configs.k[stage.config] for stage in stages],
            stage_edges(problem.profile.graph, made),
            problem.mini_batch,
        )
        assert all(samples <= stage.samples < NEVER for samples, stage in zip(kept, stages, strict=True))


def smallest_need(
    problem: Problem, found: list[Cut], configs: Configs, memory: int, sample_ns: float
) -> int | None:
    """The same by trying every cut, every configuration of every stage, every number of replicas."""
    model, graph = CostModel(problem), problem.profile.graph
    best: int | None = None
    choices = [(costs.micro_batch, k) for costs, k in zip(configs.costs, configs.k, strict=True)]
    for cut in found:
        if len(cut) > problem.cluster.size:
            continue
        whole = plan_of_cut(problem, cut, [1] * len(cut), 1)
        if depths(problem, whole) is None:
            continue
        edges = stage_edges(graph, whole)
        first = [stage for stage in range(len(cut)) if all(after != stage for _, after in edges)]
        for chosen in product(choices, repeat=len(cut)):
            kept = in_flight([b for b, _ in chosen], [k for _, k in chosen], edges, problem.mini_batch)
            value = max(kept[stage] for stage in first)
            if best is not None and value >= best:
                continue
            used = [
                _fewest(problem, model, cut, stage, chosen[stage][0], kept[stage], memory, sample_ns)
                for stage in range(len(cut))
            ]
            if sum(used) <= problem.cluster.size:
                best = value
    return best


def _fewest(
    problem: Problem, model: CostModel, cut: Cut, stage: int, size: int, kept: int, memory: int, sample_ns: float
) -> int:
    """Replicas with which the stage is fast enough and fits, more than there are devices where none do."""
    for used in (1, 2, 4):
        if used > size:
            break
        made = plan_of_cut(problem, cut, [used if at == stage else 1 for at in range(len(cut))], size)
        fits = model.stage_memory(made, stage, model.messages(made)).peak(kept // size) <= memory
        if fits and period_ns(problem, model, made, stage) <= sample_ns * size:
            return used
    return 99


@pytest.mark.parametrize("block", mostly_at_night(range(6), (0,)))
def test_the_need_is_the_smallest_of_all_plans(block: int) -> None:
    outcomes = []
    for seed in range(8 * block, 8 * block + 8):
        rng = random.Random(seed)
        count = rng.randint(3, 5)
        memory = rng.choice((120, 180, 250, 10**6))
        problem = problem_on(rng, count, random_series_parallel(rng, count), 3, memory)
        search = searched(problem)
        configs = configs_of(search, (1, 2, 4), (1,)) if seed % 2 else configs_of(search, (1, 2), (1, 2))
        space = Space(work_of(problem))
        found = list({frozenset(cut): cut for cut in cuts(search.decomposition.tree, space)}.values())
        assert sorted(leaves(search.decomposition.tree)) == list(range(count))
        for sample_ns in (500.0, 150.0, 90.0, 60.0):
            need, stages = least_need(search, configs, memory, sample_ns)
            assert need == smallest_need(problem, found, configs, memory, sample_ns), f"seed {seed}"
            outcomes.append(need)
            assert sum(configs.costs[s.config].replicas[s.choice] for s in stages) <= 3
            assert_samples_follow_the_rule(problem, configs, stages)
    assert None in outcomes
    assert any(outcomes)


@pytest.mark.parametrize("seed", range(6))
def test_the_first_of_the_drafts_has_the_smallest_time_a_sample(seed: int) -> None:
    rng = random.Random(seed)
    search = searched(problem_on(rng, 8, random_series_parallel(rng, 8), 4, 10**6))
    size = rng.choice((2, 4))
    best = search.smallest(size, 10**6)
    assert best is not None
    drafts = list(mixed_drafts(search, [size], [1], 10**6))
    longest = [_longest_ns(search.problem, each) for each in drafts]
    assert longest[0] <= best.bottleneck_ns * (1 + search.options.tolerance)
    assert max(longest) > longest[0]
    assert min(longest) == longest[0]


def _longest_ns(problem: Problem, drafts: list[Draft]) -> int:
    model, made = CostModel(problem), assemble_plan(problem, drafts, "none")
    return max(period_ns(problem, model, made, stage) for stage in range(len(made.stages)))


@pytest.mark.parametrize("variant", ["paper", "improved"])
@pytest.mark.parametrize("seed", mostly_at_night(range(6), range(3)))
def test_plans_of_mixed_stages_are_valid_and_never_worse(seed: int, variant: str) -> None:
    rng = random.Random(seed)
    problem = problem_on(rng, 10, random_series_parallel(rng, 10), 4, rng.choice((250, 400, 10**6)))
    times = []
    for options in ({}, {"k": 2}, {"sizes": "each", "targets": 4}):
        try:
            made = plan(problem, context(GraphPipeOptions(variant=variant, **options))).plan  # type: ignore[arg-type]
        except InfeasibleProblem:
            assert problem.cluster.memory_bytes < 10**6
            return
        verdict = check_schedule(problem, made, scheduled(problem, made))
        assert (verdict.status, verdict.witness) == ("valid", None)
        times.append(time_ns(problem, made))
    assert times[1] <= times[0]
    if variant == "paper":
        assert times[2] <= times[0]


@pytest.mark.parametrize(("sizes", "k", "ks"), [("each", 1, [1]), ("each", 2, [1, 2]), ("one", 7, [1, 2, 4])])
def test_sizes_beside_the_best_and_powers_of_two_up_to_k_are_tried(
    sizes: str, k: int, ks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = problem_on(random.Random(2), 10, random_series_parallel(random.Random(2), 10), 4, 10**6)
    asked: list[tuple[list[int], list[int]]] = []

    def none(search: GraphPipeSearch, sizes: list[int], ks: list[int], memory_bytes: int) -> list[list[Draft]]:
        asked.append((sizes, ks))
        return []

    monkeypatch.setattr(candidates, "mixed_drafts", none)
    options = GraphPipeOptions(variant="paper", sizes=sizes, k=k)  # type: ignore[arg-type]
    plan(problem, context(options))
    around = (
        {1: [1, 2], 2: [1, 2, 4], 4: [2, 4, 8], 8: [4, 8]} if sizes == "each" else {b: [b] for b in (1, 2, 4, 8)}
    )
    assert len(asked) == 2
    assert all(tried in around.values() and each == ks for tried, each in asked)


@pytest.mark.parametrize("k", [0, 17])
def test_a_k_out_of_range_is_refused(k: int) -> None:
    with pytest.raises(InvalidValue, match=f"k is {k}"):
        GraphPipeOptions(k=k)


def test_needs_are_those_of_the_in_flight_rule() -> None:
    problem = problem_on(random.Random(0), 4, [(0, 1), (1, 2), (2, 3)], 4, 10**6)
    configs = configs_of(searched(problem), (1, 2, 4), (1, 2, 4))
    pairs = [(costs.micro_batch, k) for costs, k in zip(configs.costs, configs.k, strict=True)]
    for (front, (b, k)), (behind, (c, m)) in product(enumerate(pairs), repeat=2):
        kept = in_flight([b, c], [k, m], [(0, 1)], problem.mini_batch)
        assert configs.needs(behind, np.array([kept[1]]))[front].tolist() == [kept[0]]
        assert configs.nothing_behind()[behind] == kept[1]
