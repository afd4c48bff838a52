"""What the kernel says of rows of stages is what the cost model and greedy orders say of their plan."""

import random
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from pipebench.algorithms.orders.greedy import GreedyOrder
from pipebench.algorithms.orders.tables import ANY, Tables
from pipebench.check import check_plan
from pipebench.costs.quantise import IntArray
from pipebench.domain.cluster import LinkMode
from pipebench.domain.errors import InfeasibleProblem
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import PeriodicSchedule
from pipebench_search.drafts.draft import Draft, Drafting, Part
from pipebench_search.drafts.moves import Neighbourhood
from pipebench_search.estimates.guess import Guesses
from pipebench_search.line.annealing import ANYWHERE, PLACED
from pipebench_search.line.kernel import Most, look, neighbour
from pipebench_search.line.tables import CAP, END, LANE, WAY, Line, line_of
from pipebench_search.score import CachedCosts
from tests.algorithms.test_greedy_order import most_bytes
from tests.builders import chain_problem, cluster, dag_problem, nodes
from tests.plugins.running import services
from tests.plugins.search.tight import on_nodes, tight


def alike(draft: Draft) -> bool:
    """Whether all stages have one micro-batch and share it."""
    first = draft.parts[0]
    return all(part.micro_batch == first.micro_batch and part.replicas == "split" for part in draft.parts)


class Lines:
    """Lines of drafts along random moves. number: of the problem, and of the random numbers."""

    def __init__(self, number: int, problem: Problem) -> None:
        self.problem, self.draw = problem, random.Random(number)
        self.model, self.drafting = CachedCosts(problem), Drafting(problem)
        near, guesses = Neighbourhood(self.model, self.drafting), Guesses(self.model)
        self.found: list[Line] = []
        seeds = [seed for seed in near.seeds() if self.drafting.possible(seed)]
        for _ in range(8):
            here = self.draw.choice(seeds)
            for _ in range(12):
                here = self.draw.choice([made for _, made in near.moves(here) if self.drafting.possible(made)])
                line = line_of(self.model, self.drafting, guesses, here) if alike(here) else None
                if line is not None and here.routing == "direct":
                    self.found.append(line)

    def caps(self, line: Line) -> list[int]:
        """Random numbers of micro-batches in flight, for each stage of the line's draft."""
        return [self.draw.randint(1, line.costs.micro_batches) for _ in line.like.parts]


def walked(line: Line, stages: IntArray, moves: int, number: int, placed: bool = False) -> list[IntArray]:
    """Rows of stages along random moves."""
    draw, found = np.array([1 + number], np.int64), [stages]
    most = Most(len(line.sizes), len(line.ways), 12, line.costs.micro_batches)
    while len(found) <= moves:
        made = neighbour(most, found[-1], PLACED if placed else ANYWHERE, 2.0, draw)
        if len(made):
            found.append(made)
    return found


def by_lane(line: Line, stages: IntArray, tables: Tables, bytes_: list[int]) -> IntArray:
    """The same by lane of a line, of which the plan has those that run something."""
    found = np.zeros(len(line.sizes), np.int64)
    for at, lane in enumerate(stages[:, LANE]):
        found[lane] = bytes_[tables.lane_of[at]]
    return found


def compare(line: Line, stages: IntArray, tables: Tables, split: bool, limit: IntArray) -> None:
    """What the kernel and greedy orders say where lanes have so many bytes."""
    ns = look(line.costs._replace(limit=limit), stages, split, ANY - 1)
    limits = dict(zip((tables.lane_of[at] for at in range(len(stages))), limit[stages[:, LANE]], strict=True))
    tables = replace(tables, limits=[(int(limits[lane]),) for lane in range(len(tables.held))])
    order = GreedyOrder(tables, stages[:, CAP].tolist(), split)
    if any(need > limits[lane] for lane, need in enumerate(most_bytes(tables, [1] * len(stages)))):
        assert ns == ANY or ns >= order.makespan_ns  # one micro-batch at a time, at best
        return
    # An update is a line through two points; each is rounded.
    assert abs(ns - order.makespan_ns) <= (len(stages) if any(tables.reduce) else 0)
    assert all(peak <= limits[lane] for lane, peak in enumerate(order.peak_bytes))


@pytest.mark.parametrize(
    ("number", "link_mode"),
    [*((number, None) for number in range(10)), (10, "full"), (11, "full"), (12, "half"), (14, "delay")],
)
def test_rows_of_stages_take_what_their_plan_takes_in_greedy_order(
    number: int, link_mode: LinkMode | None
) -> None:
    """With stages on shared devices, replicas, copies, recomputation, messages that wait; memory to the byte.

    link_mode: of links between nodes of two devices, whose ways out and in are shared; None: no nodes.
    """
    problem = tight(number, "sync", share=100.0, operators=8, devices=4 if link_mode else 2 + number % 3)
    if link_mode:
        problem = on_nodes(problem, link_mode)
    lines = Lines(number, problem)
    compared = 0
    for line in lines.found[:12]:
        for stages in walked(line, line.stages(lines.caps(line)), 6, number):
            plan = lines.drafting.plan_of(line.draft_of(stages))
            assert plan is not None
            assert check_plan(problem, plan).status == "valid"
            tables = Tables.of(lines.model, plan, line.costs.micro_batches, links=True)
            for split in {False, line.splits}:
                order = GreedyOrder(tables, stages[:, CAP].tolist(), split)
                peaks = by_lane(line, stages, tables, order.peak_bytes)
                compare(line, stages, tables, split, peaks)
                least = by_lane(line, stages, tables, most_bytes(tables, [1] * len(stages)))
                compare(line, stages, tables, split, least)
                for lane in set(stages[:, LANE].tolist()):
                    compare(line, stages, tables, split, peaks - (np.arange(len(peaks)) == lane))
                compared += 1
    assert compared >= 50


@pytest.mark.parametrize("last", range(4))
def test_the_next_copy_begins_behind_the_last_lane_that_runs_anything(last: int) -> None:
    """So that it says over which links copies add up their gradients."""
    on = nodes(8, 4, within=4e9, between=1e9)
    problem = chain_problem([50, 30], [90, 80], on, weights=[10_000, 30_000], mode="sync", mini_batch=8)
    drafting, model = Drafting(problem), CachedCosts(problem)
    way = drafting.ways[0]
    draft = Draft((Part((0,), 0, way, 1), Part((1,), 1, way, 1)), (1, 1), copies=2)
    line = line_of(model, drafting, Guesses(model), draft)
    assert line is not None
    assert line.sizes == (1, 1, 1, 1)
    stages = line.stages([4, 4])
    stages[1, LANE] = last
    plan = drafting.plan_of(line.draft_of(stages))
    assert plan is not None
    tables = Tables.of(model, plan, 4, links=True)
    assert min(tables.reduce) > 1000
    order = GreedyOrder(tables, [4, 4], line.splits)
    assert look(line.costs, stages, line.splits, ANY - 1) == order.makespan_ns


@pytest.mark.parametrize("number", range(8))
def test_without_a_flush_rows_take_what_their_pattern_takes(number: int) -> None:
    problem = tight(number, "async", share=4.0, operators=8, devices=2 + number % 3)
    lines = Lines(number, problem)
    compared = over = 0
    for line in lines.found[:10]:
        for stages in walked(line, line.stages(lines.caps(line)), 4, number):
            plan = lines.drafting.plan_of(line.draft_of(stages))
            assert plan is not None
            ns = look(line.costs, stages, False, ANY - 1)
            try:
                made = services().schedule("modulo", problem, plan)
            except InfeasibleProblem:
                assert ns == ANY
                over += 1
                continue
            assert isinstance(made, PeriodicSchedule)
            # A share of an update is a line through two points, rounded up; a period is close to one part in 1024.
            assert ns / line.costs.micro_batches == pytest.approx(made.period_ns, rel=2e-3)
            compared += 1
    assert compared >= 10
    assert over + compared >= 20


@pytest.mark.parametrize("number", range(4))
def test_another_order_of_the_operators_is_a_topological_one_branch_by_branch(number: int) -> None:
    edges = [(0, (1, 2, 3), 9), (1, (4,), 9), (2, (5,), 9), (3, (6,), 9), (4, (7,), 9), (5, (7,), 9), (6, (7,), 9)]
    problem = dag_problem([5] * 8, [9] * 8, edges, cluster(2), mode="sync", mini_batch=4, micro_batches=(1, 2, 4))
    lines = Lines(number, problem)
    graph, draw, changed = lines.model.graph, random.Random(number), 0
    for like in lines.found[:8]:
        line = line_of(lines.model, lines.drafting, Guesses(lines.model), like.like, draw)
        assert line is not None
        place = {operator: at for at, operator in enumerate(line.order)}
        assert sorted(place) == list(range(len(graph.operators)))
        assert all(place[a] < place[b] for a, readers in enumerate(graph.successors) for b in readers)
        caps = lines.caps(line)
        same = line.draft_of(line.stages(caps)).parts
        assert {frozenset(part.operators) for part in same} == {frozenset(p.operators) for p in like.like.parts}
        assert look(line.costs, line.stages(caps), False, ANY - 1) == look(
            like.costs, like.stages(caps), False, ANY - 1
        )
        changed += line.order != like.order
    assert changed >= 1


def test_what_takes_longer_than_the_limit_is_told_at_once() -> None:
    lines = Lines(3, tight(3, "sync", share=100.0, operators=8, devices=3))
    seen = 0
    for line in lines.found[:12]:
        stages = line.stages(lines.caps(line))
        ns = look(line.costs, stages, line.splits, ANY - 1)
        if ns < ANY:
            assert look(line.costs, stages, line.splits, ns) == ns
            assert look(line.costs, stages, line.splits, ns - 1) == ANY
            seen += 1
    assert seen >= 3


def shape(line: Line, stages: IntArray) -> list[int]:
    """Stages of each lane."""
    return np.bincount(stages[:, LANE], minlength=len(line.sizes)).tolist()


@pytest.mark.parametrize("placed", [False, True])
def test_moves_lead_to_rows_of_all_operators(placed: bool) -> None:
    lines = Lines(1, tight(1, "sync", operators=8, devices=3))
    line = next(line for line in lines.found if len(line.sizes) > 1 and len(line.like.parts) > 2)
    found = walked(line, line.stages(lines.caps(line)), 400, 1, placed)
    for stages in found:
        ends = stages[:, END].tolist()
        assert ends == sorted(set(ends))
        assert ends[0] > 0
        assert ends[-1] == len(line.order)
        assert len(stages) <= 12
        for column, least, most in (
            (LANE, 0, len(line.sizes) - 1),
            (WAY, 0, len(line.ways) - 1),
            (CAP, 1, line.costs.micro_batches),
        ):
            assert least <= stages[:, column].min()
            assert stages[:, column].max() <= most
        assert not placed or shape(line, stages) == shape(line, found[0])
    grown = {len(later) - len(earlier) for earlier, later in pairwise(found)}
    assert grown == ({0} if placed else {-1, 0, 1, 2})
    changed = {
        column for a, b in pairwise(found) if len(a) == len(b) for column in np.flatnonzero((a != b).any(0))
    }
    assert changed >= ({END, CAP} if placed else {END, LANE, CAP})
