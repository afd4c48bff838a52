"""The words for recomputation: what each of them asks of an operator, and of a profile."""

import pytest
from msgspec.structs import replace

from pipebench.domain.errors import InvalidValue
from pipebench.domain.graph import Operator
from pipebench.domain.problem import Pins, Problem
from pipebench.domain.profile import Alternative
from pipebench.domain.recomputation import RecomputePin, of_layers, of_stages, permits, repeated
from pipebench.testing.cases import chain, layers

LAYER, HEAD = (Operator(name="op", kind="matmul", inputs=(), layer=layer) for layer in (3, None))


def way(kind: str) -> Alternative | None:
    if kind == "plain":
        return None
    return Alternative(
        id=kind,
        recompute=kind != "split",
        selective=kind == "selective",
        forward_s=(1.0,),
        backward_s=(1.0,),
        parameter_bytes=0,
        saved_bytes_per_sample=0.0,
    )


WAYS = ("plain", "split", "full", "selective")


@pytest.mark.parametrize(
    ("pin", "of_a_layer", "of_no_layer"),
    [
        (None, WAYS, WAYS),
        ("none", ("plain", "split"), ("plain", "split")),
        ("stage", ("full",), ("full",)),
        ("full", ("full",), WAYS),
        ("selective", ("selective",), WAYS),
    ],
)
def test_what_a_word_lets_an_operator_do(
    pin: RecomputePin | None, of_a_layer: tuple[str, ...], of_no_layer: tuple[str, ...]
) -> None:
    assert tuple(kind for kind in WAYS if permits(pin, LAYER, way(kind))) == of_a_layer
    assert tuple(kind for kind in WAYS if permits(pin, HEAD, way(kind))) == of_no_layer


def test_what_runs_again_and_who_is_meant() -> None:
    assert [repeated(way(kind)) for kind in WAYS] == ["none", "none", "full", "selective"]
    pins: tuple[RecomputePin | None, ...] = (None, "none", "stage", "full", "selective")
    assert [of_layers(pin) for pin in pins] == [None, None, None, "full", "selective"]
    assert [of_stages(pin) for pin in pins] == ["none", "none", "stage", "none", "none"]


def without_ways(problem: Problem, kind: str) -> Problem:
    """The problem whose last layer has no way of that kind."""
    costs = problem.profile.costs[0]
    last = costs.operators[-1]
    kept = tuple(each for each in last.alternatives if repeated(each) != kind)
    made = replace(costs, operators=(*costs.operators[:-1], replace(last, alternatives=kept)))
    return replace(problem, profile=replace(problem.profile, costs=(made,)), pins=Pins())


@pytest.mark.parametrize("pin", ["full", "selective"])
def test_a_pin_that_the_profile_has_no_way_for_is_refused_with_what_to_do(pin: RecomputePin) -> None:
    pins = Pins(recompute=pin)
    with pytest.raises(InvalidValue, match=f"pinned to {pin}, profile 'chain' has no layers") as none:
        replace(chain("sync"), pins=pins)
    assert none.value.hint == "pin stage"
    given = layers("sync", pins)
    with pytest.raises(InvalidValue, match=f"pinned to {pin}, 'op5' of profile 'chain' has no alternative") as no:
        replace(without_ways(given, pin), pins=pins)
    assert "or pin" in (no.value.hint or "")
    graph = given.profile.graph
    joined = replace(graph, operators=tuple(replace(each, layer=each.layer // 2) for each in graph.operators))  # type: ignore[operator]
    with pytest.raises(InvalidValue, match="layer 0 of profile 'chain' is not one operator: 'op0' and 'op1'"):
        replace(given, profile=replace(given.profile, graph=joined))


def test_only_what_recomputes_is_selective() -> None:
    with pytest.raises(InvalidValue, match="is selective, and does not recompute"):
        Alternative(
            id="x",
            selective=True,
            forward_s=(1.0,),
            backward_s=(1.0,),
            parameter_bytes=0,
            saved_bytes_per_sample=0.0,
        )


def test_a_pin_of_layers_does_not_move_problems_without_one() -> None:
    """An alternative says that it is not selective by leaving it out, as older files do."""
    given = layers("sync", Pins())
    other = replace(given, pins=Pins(recompute="full"))
    assert given.problem_id != other.problem_id
    assert chain("sync").problem_id == replace(chain("sync"), pins=Pins()).problem_id
    assert "selective" not in way("full").identity_content()  # type: ignore[union-attr]
