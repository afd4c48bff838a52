"""Problems in blocks: which there are, and that every plan of one is looked at."""

from pipebench.bench.cage.installed import installed_host
from tests.nearness.blocks import MOST_DEVICES, InBlocks, distance_in_blocks, in_blocks
from tests.nearness.problems import TightGraph


def test_problems_have_few_devices_and_more_operators_than_blocks() -> None:
    found = list(in_blocks(4, 40, 10, 0))
    assert [each.devices for each in found] == sorted(each.devices for each in found)
    assert {each.devices for each in found} <= set(range(2, MOST_DEVICES))
    assert {each.group.split(" on ")[0] for each in found} == {"chains", "branches", "tight graphs"}
    assert {each.mode for each in found} == {"sync", "async"}
    assert len({each.label for each in found}) == len(found)
    assert all(each.whole.operators > 4 for each in found if isinstance(each.whole, TightGraph))


def test_the_best_of_all_plans_stands_beside_the_bound() -> None:
    each = InBlocks(TightGraph(3, "async", operators=8, devices=2), 3, 2)
    problem = each.problem(installed_host())
    assert len(problem.profile.graph.operators) == 3
    found = distance_in_blocks(installed_host(), each)
    assert found.optimal
    assert found.best_ns is not None
    assert found.bound_ns <= found.best_ns < 1.5 * found.bound_ns
    assert found.group == "tight graphs on 2 in 3 blocks"
