"""Ids of problems stay: a store that was written before a field joined still finds its rows."""

from typing import Any

from msgspec.structs import replace

from pipebench.domain.problem import Pins, Problem, Regime
from tests.builders import chain_problem, cluster

REGIME = Regime(mode="sync", gradient_precision="fp16", optimizer="adam", optimizer_sharding="zero1")
PINS = Pins(tensor_parallel=1, virtual_stages=2, micro_batch=4, recompute="stage", reserve=0.1)


class LaterPins(Pins, frozen=True, kw_only=True):
    """Pins with a field that joined later."""

    colour: str | None = None


class LaterProblem(Problem, frozen=True, kw_only=True):
    """A problem with a field that joined later."""

    shade: float = 0.0


def plain() -> Problem:
    return chain_problem([1, 2, 3], [2, 4, 6], cluster(4), activations=[8, 4, 2, 1], mode="sync", mini_batch=8)


def pinned() -> Problem:
    return replace(plain(), regime=REGIME, pins=PINS)


def later(problem: Problem, **fields: Any) -> Problem:
    given: dict[str, Any] = {name: getattr(problem, name) for name in Problem.__struct_fields__}
    return LaterProblem(**given, **fields)


def ids(problem: Problem) -> tuple[str, str]:
    return problem.workload_id[:16], problem.problem_id[:16]


def test_ids_are_those_of_version_0_1() -> None:
    assert ids(plain()) == ("63ebd5a043bdfc7a", "6d76cda51f319484")
    assert ids(pinned()) == ("567c6139d1c233dc", "4052ab3d6cbb4cdf")


def test_a_field_that_joins_changes_no_id_at_its_default() -> None:
    problem = pinned()
    pins = {name: getattr(PINS, name) for name in Pins.__struct_fields__}
    assert ids(replace(problem, pins=LaterPins(**pins))) == ids(problem)
    assert ids(later(problem)) == ids(problem)


def test_a_field_that_joins_is_part_of_the_id_where_it_is_said() -> None:
    problem = plain()
    found = [
        problem,
        replace(problem, pins=LaterPins(colour="red")),
        replace(problem, pins=LaterPins(colour="blue")),
        later(problem, shade=0.5),
        later(problem, shade=1.0),
    ]
    assert len({each.workload_id for each in found}) == len({each.problem_id for each in found}) == 5
