"""madpipe[variant=paper]: the grid converges to the exact DP, the allocation is scheduled by the ILP, honestly."""

import math
from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipebench.algorithms.chains.contiguous import longest_period
from pipebench.check import check_schedule
from pipebench.costs.quantise import IntArray
from pipebench.domain.errors import InfeasibleProblem, UnsupportedProblem
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import PeriodicSchedule
from pipebench.hooks.context import Context
from pipebench_madpipe.allocation import Estimate
from pipebench_madpipe.grid import (
    DOWN,
    NEAREST,
    UP,
    ValueGrid,
    grid_dp,
    grid_values,
    least_bytes,
    least_value,
    most_work,
)
from pipebench_madpipe.label_search import allocations_at, estimated_optimum
from pipebench_madpipe.paper import algorithm_1
from pipebench_madpipe.planner import plan
from pipebench_madpipe.plugin import MadPipeOptions
from pipebench_madpipe.stage_table import CUT_BACKWARD, CUT_FORWARD
from tests.algorithms.enumeration import Figures, all_bounds
from tests.algorithms.oracles import ORACLES
from tests.algorithms.strategies import chains
from tests.algorithms.test_contiguous import figures_of
from tests.nightly import examples
from tests.plugins.contiguous import pinned
from tests.plugins.madpipe.brute_force import chain_of, class_of, oplus, printed_dp
from tests.plugins.madpipe.networks import network

PAPER = MadPipeOptions(variant="paper", cuts="layers")


def fine(problem: Problem) -> ValueGrid:
    """A grid with a value for every ns and byte: nothing is rounded."""
    of = class_of(problem)
    work = most_work(of.table)
    cuts = int((of.table.layers[CUT_FORWARD] + of.table.layers[CUT_BACKWARD]).sum())
    return ValueGrid(work + 1, of.memory + 1, work + cuts + 1, UP)


@settings(max_examples=examples(60), deadline=None)
@given(chains(most_layers=5, most_devices=3, least_time=1))
def test_a_grid_of_every_value_is_the_printed_recursion(problem: Problem) -> None:
    of, figures = class_of(problem), figures_of(problem)
    longest = longest_period(chain_of(problem))
    for target in (longest // 3 + 1, longest // 2 + 1, longest):
        value = grid_dp(of.table, of.memory, target, of.most, fine(problem))[0]
        expected = printed_dp(figures, target, of.most, of.memory, longest)
        assert value == (-1 if expected == float("inf") else expected)


def on_grid(grid: ValueGrid, ends: dict[str, int]) -> Callable[[str, int], int]:
    """Rounds to values of the grid; 10^9 beyond its end."""
    counts = {"load": grid.loads, "held": grid.memories, "delay": grid.delays}

    def rounded(axis: str, value: int) -> int:
        end, steps = ends[axis], counts[axis] - 1
        exact = Fraction(value * steps, end) if end else Fraction(value * steps)
        number = {UP: math.ceil(exact), DOWN: math.floor(exact), NEAREST: math.floor(exact + Fraction(1, 2))}
        at = number[grid.rounding]
        return math.ceil(Fraction(at * end, steps)) if at <= steps else 10**9

    return rounded


@settings(max_examples=examples(300), deadline=None)
@given(
    chains(most_layers=6, most_devices=4, least_time=1),
    st.builds(ValueGrid, *[st.integers(3, 12)] * 3, st.sampled_from((UP, NEAREST, DOWN))),
    st.integers(1, 40),
    st.integers(60, 300),
)
def test_a_coarse_grid_is_the_printed_recursion_however_it_is_searched(
    problem: Problem, grid: ValueGrid, low: int, percent: int
) -> None:
    """percent: memory of all GPUs over what the network holds with one micro-batch in flight."""
    of, figures = class_of(problem), figures_of(problem)
    longest = longest_period(chain_of(problem))
    memory = 1 + figures.memory(1, figures.length, 1) * percent // (100 * of.most)
    ends = {"load": most_work(of.table), "held": memory, "delay": longest}
    for target in (longest // 5 + 1, longest // 3 + 1, longest // 2 + 1, longest):
        printed = printed_dp(figures, target, of.most, memory, longest, on_grid(grid, ends))
        value = -1 if printed > longest else printed
        assert grid_dp(of.table, memory, target, of.most, grid)[0] == value
        for below in (low, int(value), int(value) + 1, int(value) + low):
            expected = value if value < below else -1
            assert grid_dp(of.table, memory, target, of.most, grid, below)[0] == expected
            found, _, bounds, special = least_value(of.table, memory, target, of.most, grid, low, below)
            assert found == expected
            assert len(bounds) == len(special) + 1
            assert found == -1 or (bounds[0], bounds[-1]) == (0, len(figures.work))


@settings(max_examples=examples(100), deadline=None)
@given(chains(most_layers=6, least_time=1), st.integers(1, 60), st.sampled_from((UP, NEAREST, DOWN)))
def test_no_stages_hold_less_than_what_is_known(problem: Problem, target: int, rounding: int) -> None:
    """Every cut of the layers before l, each stage on a special GPU, which keeps one micro-batch less."""
    of, figures = class_of(problem), figures_of(problem)
    values = grid_values(of.table, of.memory, ValueGrid(5, 5, 5, rounding))
    least = np.zeros((figures.length + 1, 5), np.int64)
    least_bytes(of.table, values, target, least)
    for before in range(1, figures.length + 1):
        for number, delay in enumerate(values.delays.tolist()):
            held = min(
                sum(figures.memory(first + 1, end, group - 1) for first, end, group in stages)
                for bounds in all_bounds(before, before)
                for stages in [groups_of(figures, bounds, delay, target, values.delays, rounding)]
            )
            assert least[before, number] <= held


def groups_of(
    figures: Figures, bounds: tuple[int, ...], delay: int, target: int, delays: IntArray, rounding: int
) -> list[tuple[int, int, int]]:
    """First layer, end and group of each stage, from the last one on, on a grid of delays without end."""
    stages = []
    for first, end in reversed(list(pairwise(bounds))):
        work = figures.load(first + 1, end)
        stages.append((first, end, max(1, math.ceil((delay + work) / target))))
        delay = oplus(oplus(delay, work, target), figures.cut[first], target)
        if rounding != UP:
            delay = int(delays[delays <= delay][-1])
    return stages


@settings(max_examples=examples(60), deadline=None)
@given(chains(most_layers=5, most_devices=3, least_time=1))
def test_a_grid_of_every_value_meets_what_labels_meet(problem: Problem) -> None:
    """Delays beyond the grid are left out; at the longest period there are none."""
    of = class_of(problem)
    longest = longest_period(chain_of(problem))
    for target in (longest // 3 + 1, longest // 2 + 1, longest):
        value = grid_dp(of.table, of.memory, target, of.most, fine(problem))[0]
        met = bool(allocations_at(of, target, Estimate(False, False), 1)[0])
        assert met or not 0 <= value <= target
        assert target < longest or met == (0 <= value <= target)


@settings(max_examples=examples(15), deadline=None)
@given(chains(most_layers=5, most_devices=3, least_time=1))
def test_whatever_is_planned_is_valid(problem: Problem) -> None:
    with suppress(InfeasibleProblem):
        result = plan(problem, Context(options=PAPER))
        assert isinstance(result.schedule, PeriodicSchedule)
        verdict = check_schedule(problem, result.plan, result.schedule, strict_buffers=False)
        assert verdict.status == "valid", verdict.witness


@pytest.mark.parametrize("name", ORACLES)
def test_rounding_up_never_promises_less_than_the_exact_dp(name: str) -> None:
    problem = ORACLES[name].problem
    of, below = class_of(problem), longest_period(chain_of(problem)) + 1
    exact = estimated_optimum(of, Estimate(False, False), 1, below).lower_ns
    up, down = (
        algorithm_1(of.table, of.memory, of.most, ValueGrid(101, 11, 51, r), 10).period_ns for r in (UP, DOWN)
    )
    assert up == -1 or up >= exact
    assert down != -1


@pytest.mark.parametrize(
    ("devices", "memory", "rounding", "period"),
    [
        (4, 4, DOWN, 271.4),
        (8, 8, UP, 154.5),
        (8, 8, NEAREST, 136.3),
        (8, 8, DOWN, 123.0),
        (8, 12, DOWN, 87.7),
    ],
)
def test_grid_values_of_the_study(devices: int, memory: int, rounding: int, period: float) -> None:
    """Values of the study for resnet50 (also met: P = 8 and 12 GB, 114.0 up, 106.7 nearest).

    At P = 4 and 4 GB it has 319.5 (nearest) and 352.8 (up), here 319.6 and 350.7: there the answer is the last
    target that was met, not a value of the DP, and hangs on the first bracket, which the study does not state.
    """
    problem = network("resnet50", devices, memory)
    of = class_of(problem)
    found = algorithm_1(of.table, of.memory, of.most, ValueGrid(101, 11, 51, rounding), 10)
    assert round(found.period_ns / 1e6, 1) == period


def test_the_schedule_is_valid_and_the_claim_is_the_first_phase() -> None:
    problem = network("resnet50", 4, 12)
    context = Context(options=PAPER)
    result = plan(problem, context)
    assert isinstance(result.schedule, PeriodicSchedule)
    assert check_schedule(problem, result.plan, result.schedule).status == "valid"
    assert result.claimed_native is not None
    assert result.claimed_native <= result.schedule.period_ns
    assert result.scheduler == "periodic-ilp"
    assert result.termination == "heuristic"
    assert context.counters["states"] > context.counters["rows"] > 0


def test_an_allocation_without_schedule_is_infeasible() -> None:
    with pytest.raises(InfeasibleProblem, match="no schedule") as raised:
        plan(ORACLES["O8"].problem, Context(options=MadPipeOptions(variant="paper", iterations=30)))
    assert raised.value.claimed_s is not None
    assert raised.value.claimed_s >= ORACLES["O8"].printed * 1e-9


def test_a_solver_at_its_limit_says_so() -> None:
    problem = network("resnet50", 8, 8)
    options = MadPipeOptions(variant="paper", cuts="layers", ilp_nodes=1)
    result = plan(problem, Context(options=options))
    assert result.termination == "limit"
    assert any("stopped at a limit" in notice for notice in result.notices)


def test_memory_below_any_plan_and_pins() -> None:
    with pytest.raises(InfeasibleProblem, match="no allocation"):
        plan(network("resnet50", 2, 0.1), Context(options=PAPER))
    with pytest.raises(UnsupportedProblem, match="pipeline"):
        plan(pinned(network("resnet50", 4, 12), pipeline=3), Context(options=PAPER))
