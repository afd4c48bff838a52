"""Planners under `--recompute full` and `selective`: stages choose accordingly, or the planner refuses."""

import pytest
from msgspec.structs import replace

from pipebench.check import check_pins, check_plan
from pipebench.costs.model import CostModel
from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Pins, Problem, RegimeMode
from pipebench.domain.recomputation import RecomputePin
from pipebench.formats.clusters import load_cluster
from pipebench.hooks.context import Context, ProfileRequest
from pipebench.testing.cases import layers
from pipebench_analytic.plugin import AnalyticOptions
from pipebench_analytic.profiler import profile
from tests.models.zoo import model
from tests.plugins.running import services


def language(pin: RecomputePin | None, mode: RegimeMode = "sync", **pins: int) -> Problem:
    """Four layers on four A100, with tensor parallelism up to two."""
    cluster = load_cluster("dgx-a100", 4)
    request = ProfileRequest(devices=cluster.types, micro_batches=(1, 2, 4), selective=pin == "selective")
    graph = model("llm", layers=4, hidden=256, heads=8, ffn=1024, vocab=5000, sequence=128)
    made = profile(graph, Context(options=AnalyticOptions(max_tensor_parallel=2), request=request))
    plain = replace(layers(mode, Pins()), profile=made, cluster=cluster)
    return replace(plain, pins=Pins(recompute=pin, **pins))


def ways(problem: Problem, plan: Plan) -> set[str]:
    """What the layers of all stages choose."""
    graph = problem.profile.graph
    assert {stage.recompute for stage in plan.stages} == {"none"}
    return {
        choice
        for stage in plan.stages
        for name, choice in zip(stage.operators, stage.choice or ("",) * len(stage.operators), strict=True)
        if graph.operators[graph.index[name]].layer is not None
    }


CHOOSING: list[tuple[str, RegimeMode]] = [
    ("data-parallel", "sync"),
    ("data-parallel", "async"),
    ("tensor-parallel", "sync"),
    ("uniform", "sync"),
    ("uniform", "async"),
    ("layout", "sync"),
    ("gpipe-hybrid", "sync"),
    ("pipedream-2bw", "async"),
    ("piper", "sync"),
]


@pytest.mark.parametrize(("planner", "mode"), CHOOSING)
@pytest.mark.parametrize(("pin", "word"), [("full", "recompute"), ("selective", "selective")])
def test_stages_choose_as_it_is_pinned(planner: str, mode: RegimeMode, pin: RecomputePin, word: str) -> None:
    problem = language(pin, mode)
    plan = services().plan(planner, problem).plan
    assert check_plan(problem, plan).status == "valid"
    assert check_pins(problem, plan).status == "valid"
    assert {way.rpartition("-")[2] for way in ways(problem, plan)} == {word}
    unpinned = replace(problem, pins=Pins())
    assert check_pins(unpinned, services().plan(planner, unpinned).plan).status == "valid"


@pytest.mark.parametrize("planner", ["uniform", "layout", "tensor-parallel"])
def test_degrees_go_with_it(planner: str) -> None:
    problem = language("full", tensor_parallel=2)
    plan = services().plan(planner, problem).plan
    assert ways(problem, plan) == {"tp2-sp-recompute"}
    other = language("full", tensor_parallel=4)
    with pytest.raises(UnsupportedProblem, match=r"tensor.parallel(ism)? (of 1, 2 here, )?4"):
        services().plan(planner, other)


def test_only_split_layers_recompute() -> None:
    """Where the whole way is not offered, planners of whole operators refuse, the others split."""
    problem = language("full")
    costs = problem.profile.costs[0]
    split = tuple(
        replace(each, alternatives=tuple(a for a in each.alternatives if a.id != "recompute"))
        for each in costs.operators
    )
    split_only = replace(
        problem, profile=replace(problem.profile, costs=(replace(costs, operators=split),)), pins=problem.pins
    )
    with pytest.raises(UnsupportedProblem, match="for split layers alone"):
        services().plan("data-parallel", split_only)
    for planner in ("tensor-parallel", "layout"):
        plan = services().plan(planner, split_only).plan
        assert ways(split_only, plan) == {"tp2-sp-recompute"}
        assert check_pins(split_only, plan).status == "valid"


def test_a_degree_that_one_layer_lacks_is_none() -> None:
    problem = language("full")
    costs = problem.profile.costs[0]
    fewer = tuple(
        replace(each, alternatives=tuple(a for a in each.alternatives if a.id != "tp2-sp-recompute"))
        if each.operator == "layers.0"
        else each
        for each in costs.operators
    )
    lacking = replace(problem, profile=replace(problem.profile, costs=(replace(costs, operators=fewer),)))
    with pytest.raises(UnsupportedProblem, match="no alternatives for a degree above 1"):
        services().plan("tensor-parallel", lacking)
    assert ways(lacking, services().plan("layout", lacking).plan) == {"recompute"}


REFUSING: list[tuple[str, RegimeMode, str]] = [
    ("rannc", "sync", "recomputes whole stages or nothing"),
    ("graphpipe", "sync", "recomputes whole stages or nothing"),
    ("madpipe", "async", "recomputes whole stages or nothing"),
    ("contiguous-exact", "async", "recomputes whole stages or nothing"),
    ("pipedream", "sync", "does not recompute"),
    ("alpa-inter", "sync", "does not recompute"),
    ("tarnawski", "sync", "does not recompute"),
    ("pase", "sync", "does not recompute"),
]


@pytest.mark.parametrize(("planner", "mode", "why"), REFUSING)
@pytest.mark.parametrize("pin", ["full", "selective"])
def test_others_say_that_they_cannot(planner: str, mode: RegimeMode, why: str, pin: RecomputePin) -> None:
    with pytest.raises(UnsupportedProblem, match=f"{why}, recompute={pin} is pinned"):
        services().plan(planner, language(pin, mode))


def test_what_full_recomputation_keeps_and_repeats() -> None:
    """On one device: a layer's input each, one layer's rest once, and the forward of layers again."""
    problem = language("full", data_parallel=1)
    plain = replace(problem, pins=Pins(data_parallel=1, recompute="none"))
    model_, graph = CostModel(problem), problem.profile.graph
    again, kept = (services().plan("data-parallel", each).plan for each in (problem, plain))
    again = replace(again, stages=(replace(again.stages[0], micro_batch=4),))
    kept = replace(kept, stages=(replace(kept.stages[0], micro_batch=4),))
    forward = sum(
        model_.times.choice_ns(op, "", 4)[0] for op, each in enumerate(graph.operators) if each.layer is not None
    )
    more = model_.stage_times(again.stages[0]).backward - model_.stage_times(kept.stages[0]).backward
    assert more == pytest.approx(forward, abs=8)
    costs = problem.profile.costs[0].operators
    saved = next(each.saved_bytes_per_sample for each in costs if each.operator == "layers.0")
    whole, less = (model_.stage_memory(plan, 0, []) for plan in (kept, again))
    hidden = 4 * 128 * 256
    assert whole.per_micro_batch - less.per_micro_batch == pytest.approx(4 * 4 * (saved - hidden), abs=32)
    assert less.while_live - whole.while_live == pytest.approx(4 * (saved - hidden), abs=32)
