"""At the least memory with which rannc plans, its plans still fit; and cuts cost what the search says."""

from typing import Any

import pytest
from hypothesis import given, settings

from pipebench.check import check_schedule
from pipebench.costs.model import CostModel
from pipebench.domain.errors import InfeasibleProblem
from pipebench.domain.problem import Pins, Problem
from pipebench.domain.recomputation import Recompute
from pipebench.hooks.context import Context
from pipebench_rannc.blocks import Recipe
from pipebench_rannc.plugin import RaNNCOptions
from pipebench_rannc.runs import BlockRuns
from pipebench_rannc.search import every_cut
from tests.builders import chain_problem, cluster
from tests.nightly import examples
from tests.plugins.rannc.made import blocks_of
from tests.plugins.rannc.strategies import problems
from tests.plugins.running import services


def chain(memory: int) -> Problem:
    """Two stages of which the second keeps a large input for each micro-batch in flight."""
    return chain_problem(
        [5, 9, 4, 7],
        [10, 18, 8, 14],
        cluster(2, memory),
        activations=[10, 40, 40, 40, 10],
        weights=[40] * 4,
        saved=[90] * 4,
        mode="sync",
        mini_batch=16,
        pins=Pins(pipeline=2, micro_batch=1),
    )


def least_memory(planner: str) -> int:
    """The first with a plan, which must be valid."""
    for memory in range(100, 3000, 10):
        problem = chain(memory)
        try:
            result = services().plan(planner, problem)
        except InfeasibleProblem:
            continue
        schedule = result.schedule or services().schedule("gpipe", problem, result.plan)
        verdict = check_schedule(problem, result.plan, schedule)
        assert (verdict.status, verdict.witness) == ("valid", None)
        return memory
    raise AssertionError("no plan")


@pytest.mark.parametrize(
    "planner", ["rannc[variant=paper]", "rannc[variant=released,in_flight=all]", "gpipe-hybrid"]
)
def test_plans_fit_at_the_least_memory(planner: str) -> None:
    assert least_memory(planner) > 100


def test_1f1b_needs_less_than_gpipe() -> None:
    assert least_memory("rannc[rivals=false]") < least_memory("rannc[variant=paper]")


@given(problem=problems(most=7))
@settings(max_examples=40, deadline=None)
def test_every_cut_costs_what_the_search_says(problem: Problem) -> None:
    blocks = blocks_of(problem, Recipe(blocks=5, limit_bytes=2**60))
    runs = BlockRuns(CostModel(problem), blocks)
    context = Context(options=RaNNCOptions(), services=services())
    cuts: list[Any] = every_cut(problem, runs, 2**60, context)
    assert cuts
    for cut in cuts:
        longest = [max(s.forward + s.there for s in cut.stages), max(s.backward + s.back for s in cut.stages)]
        assert cut.value == sum(longest)
        assert [s.first for s in cut.stages] == [0, *(s.end for s in cut.stages[:-1])]
        assert cut.stages[-1].end == len(blocks)
        assert cut.bound_ns <= cut.estimate_ns


@given(problem=problems(most=7, devices=3))
@settings(max_examples=examples(40), deadline=None)
def test_every_stage_of_a_cut_fits_with_what_1f1b_keeps_in_flight(problem: Problem) -> None:
    blocks = blocks_of(problem, Recipe(blocks=5, limit_bytes=2**60))
    runs = BlockRuns(CostModel(problem), blocks)
    for limit_bytes in (1500, 3000, 6000):
        for cut in every_cut(problem, runs, limit_bytes, Context(options=RaNNCOptions(), services=services())):
            for place, stage in enumerate(cut.stages):
                live = min(len(cut.stages) - place, cut.flow.micro_batches)
                samples = -(-cut.flow.micro_batch // stage.replicas)
                recompute: Recompute = "stage" if stage.recompute else "none"
                needs = runs.memory(samples, stage.replicas * cut.flow.shape.copies, recompute)
                assert needs.peak(live)[stage.first, stage.end] <= limit_bytes
