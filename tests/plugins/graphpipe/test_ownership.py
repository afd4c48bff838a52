"""Which stage gets the operators around a fork, on problems whose best cut is plain to see."""

from collections.abc import Sequence

from pipebench.domain.problem import Pins, Problem
from pipebench.hooks.context import Context
from pipebench_graphpipe.planner import plan
from pipebench_graphpipe.plugin import GraphPipeOptions
from tests.builders import cluster, dag_problem


def problem_of(times: Sequence[int], readers: dict[int, Sequence[int]], devices: int, size: int = 0) -> Problem:
    """Operators of these times, forward and backward each; tensors of `size` bytes; replicas are of no use."""
    tensors = [(source, after, size) for source, after in readers.items()]
    return dag_problem(times, times, tensors, cluster(devices), mini_batch=8, pins=Pins(micro_batch=1))


def stages(problem: Problem) -> set[frozenset[int]]:
    result = plan(problem, Context(options=GraphPipeOptions(variant="paper", objective="tps", tolerance=0)))
    return {frozenset(int(name[2:]) for name in stage.operators) for stage in result.plan.stages}


def sets(*groups: Sequence[int]) -> set[frozenset[int]]:
    return set(map(frozenset, groups))


def test_the_join_goes_to_the_last_stage_of_one_branch() -> None:
    # Branches 0-1 and 2-3 meet in 4, which is light; without an owner it would need a fifth device.
    found = stages(problem_of([10, 10, 10, 10, 1], {0: [1], 1: [4], 2: [3], 3: [4]}, 4))
    assert found in (sets([0], [1, 4], [2], [3]), sets([0], [1], [2], [3, 4]))


def test_the_join_goes_to_a_group_of_whole_branches() -> None:
    # Two light branches and the join weigh as much as a heavy one.
    found = stages(problem_of([9, 9, 4, 4, 1], {0: [4], 1: [4], 2: [4], 3: [4]}, 3))
    assert found == sets([0], [1], [2, 3, 4])


def test_the_operator_before_a_fork_goes_to_the_first_stage_of_one_branch() -> None:
    found = stages(problem_of([1, 10, 10, 10, 10], {0: [1, 3], 1: [2], 3: [4]}, 4))
    assert found in (sets([0, 1], [2], [3], [4]), sets([0, 3], [4], [1], [2]))


def test_both_ends_of_a_fork_are_owned_by_different_branches() -> None:
    found = stages(problem_of([2, 10, 10, 2], {0: [1, 2], 1: [3], 2: [3]}, 2))
    assert found in (sets([0, 1], [2, 3]), sets([0, 2], [1, 3]))


def test_both_ends_of_a_fork_are_owned_by_branches_that_are_alike() -> None:
    # Two branches of three operators; one of them cannot own both ends without a fifth stage.
    found = stages(
        problem_of([6, 4, 4, 4, 4, 4, 4, 6], {0: [1, 4], 1: [2], 2: [3], 3: [7], 4: [5], 5: [6], 6: [7]}, 4)
    )
    assert found in (sets([0, 1], [2, 3], [4, 5], [6, 7]), sets([0, 4], [5, 6], [1, 2], [3, 7]))


def test_both_ends_of_a_fork_are_owned_by_one_branch() -> None:
    # Branch 1-2-3 is long; branch 4 is a stage by itself.
    found = stages(problem_of([4, 6, 10, 6, 10, 4], {0: [1, 4], 1: [2], 2: [3], 3: [5], 4: [5]}, 4))
    assert found == sets([0, 1], [2], [3, 5], [4])


def test_one_stage_owns_an_operator_between_two_forks() -> None:
    # 0 and 1 meet in 2, from which 3 and 4 part.
    found = stages(problem_of([10, 5, 1, 5, 10], {0: [2], 1: [2], 2: [3, 4]}, 3))
    assert found == sets([0], [1, 2, 3], [4])


def test_branches_are_grouped_when_there_are_more_of_them_than_devices() -> None:
    found = stages(problem_of([6, 6, 6, 6], {}, 2))
    assert {len(stage) for stage in found} == {2}
    assert stages(problem_of([8, 4, 4, 8], {}, 3)) == sets([0], [3], [1, 2])


def test_a_light_side_input_goes_along_with_the_stage_that_reads_it() -> None:
    # A chain 0 … 5; operator 6 feeds 4 from the side. Cut in the middle of the branch that 6 stands beside.
    found = stages(problem_of([10] * 6 + [1], {0: [1], 1: [2], 2: [3], 3: [4], 4: [5], 6: [4]}, 2))
    assert found == sets([0, 1, 2], [3, 4, 5, 6])


def test_a_light_side_output_goes_along_with_the_stage_that_makes_it() -> None:
    found = stages(problem_of([10] * 6 + [1], {0: [1], 1: [2, 6], 2: [3], 3: [4], 4: [5]}, 2, size=5))
    assert found == sets([0, 1, 2, 6], [3, 4, 5])


def test_an_owner_takes_an_operator_of_its_own_branch() -> None:
    """Branches 0, 1, 2 and 3-4 meet in 5. The best, 5 with 1 and 2, is not in the space: the lightest branch goes
    first, of which 3 fits with no weights but its own, and sends much. An owner of nothing would let it in.
    """
    tensors = [(0, (5,), 0), (1, (5,), 0), (2, (5,), 0), (3, (4,), 15), (4, (5,), 0)]
    times, weights = [10, 4, 4, 3, 0, 1], [0, 20, 20, 100, 0, 20]
    problem = dag_problem(
        times, times, tensors, cluster(3, 200), weights=weights, mini_batch=8, pins=Pins(micro_batch=1)
    )
    assert stages(problem) == sets([0, 5], [1, 2], [3, 4])
