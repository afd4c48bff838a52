"""What is not priced where ranks share out sequences is not judged valid."""

from msgspec.structs import replace

from pipebench.check import check_plan
from pipebench.domain.graph import Operator
from tests.costs.test_context import plan, problem


def test_operators_that_are_split_over_devices_are_not_priced() -> None:
    first = plan(2, 2).stages[0]
    split = replace(first, data_parallel=1, tensor_parallel=2, sharding=({"width": 2},))
    halved = replace(plan(2, 2), stages=(split, plan(2, 2).stages[1]))
    for ranks in (1, 2):
        given = problem(ranks)
        wide = Operator(
            name="a", kind="op", parameters=("wa",), dims={"width": 4}, axes={"t": (), "wa": ("width",)}
        )
        graph = replace(given.profile.graph, operators=(wide, given.profile.graph.operators[1]))
        verdict = check_plan(replace(given, profile=replace(given.profile, graph=graph)), halved)
        assert verdict.status == ("valid" if ranks == 1 else "unknown"), verdict
        assert ranks == 1 or verdict.reason == (
            "stage 0 splits dims of its operators, and ranks share out its sequences"
        )


def test_a_device_is_as_many_ranks() -> None:
    """32 accelerators, two ranks of each sequence: there is no device 16."""
    assert check_plan(problem(2), plan(8, 8)).status == "valid"
    beyond = check_plan(problem(2), plan(8, 8, first=1))
    assert beyond.status == "invalid"
    assert check_plan(problem(1), plan(8, 8, first=1)).status == "valid"
