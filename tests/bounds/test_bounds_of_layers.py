"""Bounds where layers are pinned to recompute: below every plan that honours the pin, above those without it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from pipebench.bounds import memory_bound, time_bound
from pipebench.costs.model import CostModel
from pipebench.domain.errors import InfeasibleProblem
from pipebench.domain.problem import Pins, Problem
from pipebench.domain.profile import Alternative
from pipebench.domain.recomputation import RecomputePin
from tests.bounds.every_plan import length_ns, memory_bytes, plans
from tests.builders import chain_problem, cluster

NS = 1e-9


def layered(forward: list[int], saved: list[int], pin: RecomputePin | None, devices: int = 2) -> Problem:
    """A chain of layers with three ways each: all again, half again, and split over two devices and all again."""
    between = [0, *[3] * (len(forward) - 1), 0]
    plain = chain_problem(
        forward, forward, cluster(devices), activations=between, saved=saved, mode="sync", mini_batch=2
    )
    graph, costs = plain.profile.graph, plain.profile.costs[0]
    operators = tuple(replace(each, layer=place) for place, each in enumerate(graph.operators))

    def way(place: int, name: str, ways: int, again: int) -> Alternative:
        kept = 0 if name != "half" else saved[place] // 2
        return Alternative(
            id=name,
            tensor_parallel=ways,
            recompute=True,
            selective=name == "half",
            forward_s=(forward[place] * NS,),
            backward_s=((forward[place] + again) * NS,),
            parameter_bytes=0,
            saved_bytes_per_sample=kept,
            transient_bytes_per_sample=saved[place] - kept,
        )

    made = tuple(
        replace(
            each,
            alternatives=(
                way(place, "all", 1, forward[place]),
                way(place, "half", 1, forward[place] // 2),
                way(place, "split", 2, forward[place] // 2),
            ),
        )
        for place, each in enumerate(costs.operators)
    )
    profile = replace(
        plain.profile, graph=replace(graph, operators=operators), costs=(replace(costs, operators=made),)
    )
    return replace(plain, profile=profile, pins=Pins(recompute=pin))


@settings(max_examples=12, deadline=None)
@given(
    st.lists(st.integers(0, 9), min_size=2, max_size=2),
    st.lists(st.integers(0, 9), min_size=2, max_size=2),
    st.sampled_from(["full", "selective"]),
)
def test_no_plan_that_honours_the_pin_is_below_the_bounds(
    forward: list[int], saved: list[int], pin: RecomputePin
) -> None:
    problem = layered(forward, saved, pin)
    model, every = CostModel(problem), list(plans(problem))
    assert every
    time, memory = time_bound(problem), memory_bound(problem)
    for plan in every:
        chosen = [choice for stage in plan.stages for choice in stage.choice]
        assert set(chosen) <= ({"half"} if pin == "selective" else {"all", "split"})
        assert time.ns <= length_ns(model, plan), plan
        assert memory.value <= memory_bytes(model, plan), plan


@pytest.mark.parametrize(("pin", "each"), [(None, 10), ("full", 15), ("selective", 12)])
def test_the_bound_counts_what_runs_again(pin: RecomputePin | None, each: int) -> None:
    """One device: all work, once. Forward and backward 5 ns a layer and sample; two layers, two samples."""
    problem = layered([5, 5], [4, 4], pin, devices=1)
    assert time_bound(problem).ns == each * 2 * 2
    assert min(length_ns(CostModel(problem), plan) for plan in plans(problem)) == each * 2 * 2


def test_pins_that_no_way_honours_together_leave_no_plan() -> None:
    problem = layered([5, 5], [4, 4], "selective")
    both = replace(problem, pins=Pins(recompute="selective", tensor_parallel=2))
    assert list(plans(both)) == []
    for bound in (time_bound, memory_bound):
        with pytest.raises(InfeasibleProblem, match="the pins leave operator 'op0' no way to run"):
            bound(both)
