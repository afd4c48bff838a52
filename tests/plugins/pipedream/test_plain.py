"""The walk and the DP are those of the released optimizer, written down in plain Python."""

from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipebench.costs.model import CostModel
from pipebench.costs.quantise import IntArray
from pipebench_pipedream import paper_model
from pipebench_pipedream.downsets import linked_downsets, reached_downsets
from pipebench_pipedream.level_search import Window
from pipebench_pipedream.paper_costs import operator_units
from pipebench_pipedream.paper_model import Level, ModelRules
from pipebench_pipedream.planner import plan as pipedream
from pipebench_pipedream.plugin import PipeDreamPlannerOptions
from pipebench_pipedream.states import Words, close_over, line_of_states, states_along, states_of
from tests.algorithms.graphs import dags
from tests.plugins.pipedream.plain import AntichainWalk, released_bottleneck
from tests.plugins.pipedream.shared_problems import shared_problem
from tests.plugins.pipedream.test_paper_model import random_dag
from tests.plugins.running import context


def positions(before: Words, state: int) -> list[int]:
    """States that lead to one."""
    return [k for k in range(len(before)) if int(before[state, k // 64]) >> k % 64 & 1]


def closed(links: list[tuple[int, int]], states: int) -> list[list[int]]:
    before = np.zeros((states, -(-states // 64)), np.uint64)
    close_over(before, np.array(links, np.int64).reshape(-1, 2))
    return [positions(before, state) for state in range(states)]


@given(dags(9), st.randoms(use_true_random=False))
def test_walk(successors: list[list[int]], chance: Any) -> None:
    """Also of graphs with several sources, whose first one may reach a part only, and listed in any order."""
    names = list(range(len(successors)))
    chance.shuffle(names)
    renamed: list[list[int]] = [[] for _ in names]
    for unit, after in enumerate(successors):
        renamed[names[unit]] = [names[each] for each in after]
    walked, before = AntichainWalk(renamed).ordered()
    reached, links = reached_downsets(renamed, 10_000)
    assert reached == [sum(1 << unit for unit in each) for each in walked]
    assert closed(links, len(reached)) == before


@given(dags(8))
def test_every_downset_leads_to_those_that_hold_it(successors: list[list[int]]) -> None:
    listed, links = linked_downsets(successors, 10_000)
    assert closed(links, len(listed)) == [
        [place for place, smaller in enumerate(listed) if smaller != larger and not smaller & ~larger]
        for larger in listed
    ]


@pytest.mark.parametrize(("model", "devices"), [("alexnet", 8), ("vgg16", 6), ("gnmt", 4), ("resnet50", 3)])
@pytest.mark.parametrize("straight", [False, True])
def test_bottleneck(model: str, devices: int, straight: bool) -> None:
    problem = shared_problem(model, devices)
    units = operator_units(CostModel(problem), problem.mini_batch)
    replication = "none" if straight else "any"
    asked = context(PipeDreamPlannerOptions(cost="released", memory="decreasing", replication=replication))
    bandwidth = problem.cluster.levels[0].bandwidth_bytes_s
    found = pipedream(problem, asked).claimed_native
    assert found == pytest.approx(released_bottleneck(units, devices, bandwidth, straight), rel=1e-12)


def test_line_of_states() -> None:
    units = operator_units(CostModel(shared_problem("gnmt", 2)), 1)
    states = states_of(units, "antichain", (), "free")
    line = line_of_states(states)
    assert len(line) == units.count
    assert [int(states.holds[at].sum()) for at in line] == list(range(1, units.count + 1))
    along = states_along(states, line)
    assert [positions(along.before, state) for state in (0, 1, 30)] == [[], [0], list(range(30))]


RULES = [
    {"cost": cost, "communication": communication, "idle": idle, "memory": memory, "states": states}
    for cost, memory in [("paper", "decreasing"), ("released", "released"), ("released", "decreasing")]
    for communication in ("charged", "free")
    for idle in (False, True)
    for states in ("chain", "antichain")
]


@pytest.mark.parametrize("seed", range(5))
def test_window_changes_no_plan(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor who wins a tie, whatever the model, and with little memory."""
    for problem in (random_dag(seed), random_dag(seed, 40_000), shared_problem("alexnet", 5, 10**9)):
        for rules in RULES:
            asked = context(msgspec.convert(rules, PipeDreamPlannerOptions))
            results = []
            for narrow in (True, False):
                with monkeypatch.context() as patched:
                    if not narrow:
                        patched.setattr(paper_model, "_narrow_window", whole_window)
                    try:
                        results.append(repr(pipedream(problem, asked)))
                    except Exception as error:
                        results.append(str(error))
            assert results[0] == results[1], rules


def whole_window(states: Any, level: Level, rules: ModelRules) -> Window:
    everything: IntArray = np.full(states.count, level.machines, np.int64)
    return Window(np.inf, np.ones_like(everything), everything)


def test_window_keeps_states_on_machines_of_use() -> None:
    """gnmt on 8 machines: little is left between what is reached and all machines at work all the time."""
    problem = shared_problem("gnmt", 8)
    units = operator_units(CostModel(problem), problem.mini_batch)
    states = states_of(units, "antichain", (), "free")
    rules = ModelRules(True, False, False, tuple(range(1, 9)), np.inf)
    window = paper_model._narrow_window(states, Level(8, 1e9), rules)
    solved = paper_model.solve(states, [Level(8, 1e9)], rules)
    assert solved is not None
    assert solved.bottleneck_s <= window.most <= 1.2 * solved.bottleneck_s
    assert np.mean(np.maximum(window.widest - window.fewest + 1, 0)) < 4
