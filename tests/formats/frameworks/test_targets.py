"""What each framework can be told, and what it refuses."""

import ast
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from pipebench.domain.errors import PipebenchError
from pipebench.domain.plan import Plan
from pipebench.domain.problem import OptimizerSharding, Pins, Problem
from pipebench.formats.frameworks import deepspeed, pipelining, torchtitan
from pipebench.formats.frameworks.arrangement import arrange
from pipebench.formats.frameworks.layouts import read_layout
from pipebench.formats.frameworks.requirements import CannotExpress
from pipebench.formats.frameworks.targets import TARGETS, target_named
from pipebench.formats.profiles.parts import only
from pipebench.formats.profiles.pipedream_graph import parse_lines
from tests.builders import chain_problem, cluster, stages_plan
from tests.language_models import TINY, planned, problem

NAMES = list(TARGETS)


def changed(plan: Plan, stage: int, **fields: object) -> Plan:
    stages = list(plan.stages)
    stages[stage] = replace(stages[stage], **fields)
    return replace(plan, stages=tuple(stages))


@pytest.mark.parametrize("name", NAMES)
def test_every_target_writes_it(name: str, given: tuple[Problem, Plan]) -> None:
    target = target_named(name)
    text = target.write(target.can_express(*given), "order.csv")
    assert text.endswith("\n")
    assert target.refusal(*given) == ""


@pytest.mark.parametrize("name", NAMES)
def test_replicas_by_stage(name: str, given: tuple[Problem, Plan]) -> None:
    made, plan = given
    assert "replicas per stage differ" in TARGETS[name].refusal(made, changed(plan, 1, data_parallel=2))


@pytest.mark.parametrize("name", NAMES)
def test_not_contiguous(name: str, given: tuple[Problem, Plan]) -> None:
    made, plan = given
    first, second = plan.stages[0].operators, plan.stages[1].operators
    swapped = changed(
        changed(plan, 0, operators=(*first[:-1], second[-1])), 1, operators=(first[-1], *second[:-1])
    )
    assert "not contiguous" in TARGETS[name].refusal(made, swapped)


@pytest.mark.parametrize("name", NAMES)
def test_unequal_stages_by_rank(name: str, given: tuple[Problem, Plan]) -> None:
    made, plan = given
    shared = replace(changed(plan, 3, devices=plan.stages[0].devices), placement="listed")
    assert "unequal stages per rank" in TARGETS[name].refusal(made, shared)


@pytest.mark.parametrize("name", NAMES)
def test_two_pipelines(name: str, given: tuple[Problem, Plan]) -> None:
    made, plan = given
    both = replace(plan, stages=plan.stages * 2, order_edges=(), placement="listed", pipelines=2)
    assert TARGETS[name].refusal(made, both) == "2 pipelines over the same devices, each with weights of its own"


def inside(layers: Sequence[int | None]) -> tuple[Problem, Plan]:
    made = chain_problem([1] * 4, [1] * 4, cluster(2), mode="sync")
    operators = tuple(
        replace(op, layer=layer, path=f"block.{layer}")
        for op, layer in zip(made.profile.graph.operators, layers, strict=True)
    )
    graph = replace(made.profile.graph, operators=operators)
    return replace(made, profile=replace(made.profile, graph=graph)), stages_plan([[0, 1], [2, 3]])


def test_a_cut_inside_a_layer() -> None:
    made, plan = inside([0, 1, 1, 2])
    for name in ("megatron", "torchtitan", "pipelining"):
        assert "inside layer 1" in TARGETS[name].refusal(made, plan)
    for name in ("deepspeed", "pipedream"):
        assert TARGETS[name].refusal(made, plan) == ""


def test_other_models_have_no_layout() -> None:
    made, plan = inside([0, 0, 1, 1])
    assert "no language model" in TARGETS["megatron"].refusal(made, plan)
    assert "no llama-like" in TARGETS["torchtitan"].refusal(made, plan)
    assert pipelining.split_points(arrange(made, plan)) == ["block.1"]


def test_async_is_for_pipedream_only() -> None:
    made, plan = inside([0, 0, 1, 1])
    made = replace(made, regime=replace(made.regime, mode="async"))
    assert [name for name in NAMES if not TARGETS[name].refusal(made, plan)] == ["pipedream"]


def test_megatron_flags(given: tuple[Problem, Plan]) -> None:
    lines = TARGETS["megatron"].write(arrange(*given), "").splitlines()
    assert "--tensor-model-parallel-size 2" in lines
    assert "--pipeline-model-parallel-size 4" in lines
    assert "--micro-batch-size 1" in lines
    assert "--global-batch-size 16" in lines
    assert "--sequence-parallel" in lines
    assert not any(line.startswith("--recompute") for line in lines)


def test_recompute_is_said() -> None:
    pins = Pins(tensor_parallel=2, pipeline=4, virtual_stages=1, micro_batch=1, recompute="stage")
    made = problem(devices=8, mini_batch=16, pins=pins, **TINY)
    text = TARGETS["megatron"].write(arrange(made, planned(made)), "")
    assert "--recompute-granularity full --recompute-method uniform --recompute-num-layers 1" in text


def test_torchtitan_parts_cover_the_model(given: tuple[Problem, Plan]) -> None:
    listed = torchtitan.parts(arrange(*given))
    assert [name for part in listed for name in part] == torchtitan.module_names(8)
    snippet = TARGETS["torchtitan"].write(arrange(*given), "order.csv")
    ast.parse(snippet)
    assert '"PipelineScheduleSingle"' in snippet


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ([["tok_embeddings", "layers.0"], ["layers.1", "norm"]], "'lm_head' is in no part"),
        ([["tok_embeddings", "layers.0"], ["layers.0", "layers.1", "norm", "lm_head"]], "in several parts"),
        ([["tok_embeddings", "layers.0.attn"], ["layers.1", "norm", "lm_head"]], "does not have"),
        ([["tok_embeddings", "layers.1"], ["layers.0", "norm", "lm_head"]], "out of order"),
        ([["tok_embeddings"], ["layers.0", "layers.1"], ["norm", "lm_head"]], "do not divide"),
    ],
)
def test_bad_parts(parts: list[list[str]], reason: str) -> None:
    with pytest.raises(PipebenchError, match=reason):
        torchtitan.check_parts(parts, 2, 2)


@pytest.mark.parametrize("bounds", [[0, 3], [1, 2, 4], [0, 3, 2], [0, 2, 5]])
def test_bad_bounds(bounds: list[int]) -> None:
    with pytest.raises(PipebenchError, match="never back"):
        deepspeed.check_bounds(bounds, 4, 2)


ONE_WAY = Pins(tensor_parallel=1, pipeline=2, data_parallel=2, virtual_stages=1, micro_batch=2)
ROUTED: dict[str, Any] = {"architecture": "mixtral", "experts": 4, "active": 2, "expert_parallel": 2}


@pytest.mark.parametrize(
    ("pins", "sharding", "options", "refusing"),
    [
        (ONE_WAY, "none", {}, set()),
        (ONE_WAY, "zero3", {}, {"megatron", "torchtitan", "pipelining", "deepspeed"}),
        (ONE_WAY, "none", ROUTED, {"pipelining", "deepspeed", "pipedream"}),
        (replace(ONE_WAY, virtual_stages=2), "none", {}, {"deepspeed", "pipedream"}),
        (replace(ONE_WAY, recompute="selective"), "none", {}, {"deepspeed"}),
    ],
)
def test_what_pins_and_terms_rule_out_is_refused_before_there_is_a_plan(
    pins: Pins, sharding: OptimizerSharding, options: dict[str, Any], refusing: set[str]
) -> None:
    """With the words that a plan of the problem is refused with."""
    made = problem(4, 16, pins, sharding, **TINY | options)
    plan = planned(made)
    told: dict[str, str] = {}
    for name, target in TARGETS.items():
        try:
            target.require_some_plan(made)
        except PipebenchError as error:
            told[name] = error.message
    assert all(
        target.refusal(made, plan) in told.get(name, "") for name, target in TARGETS.items() if name in told
    )
    assert set(told) == refusing


def test_deepspeed_runs_one_stage_a_rank() -> None:
    pins = Pins(tensor_parallel=1, pipeline=4, data_parallel=1, virtual_stages=2, micro_batch=1)
    made = problem(devices=4, mini_batch=16, pins=pins, **TINY)
    plan = planned(made)
    assert "2 stages a rank" in TARGETS["deepspeed"].refusal(made, plan)
    assert TARGETS["megatron"].refusal(made, plan) == ""
    with pytest.raises(CannotExpress):
        TARGETS["pipedream"].can_express(made, plan)


def test_pipedream_ids(given: tuple[Problem, Plan], tmp_path: object) -> None:
    text = TARGETS["pipedream"].write(arrange(*given), "")
    nodes, _ = parse_lines(text.encode(), "graph.txt")
    sizes = [len(stage.operators) for stage in given[1].stages]
    assert [sum(node.stage == k for node in nodes) for k in range(4)][1:] == sizes[1:]


@pytest.mark.parametrize("name", ["megatron", "torchtitan", "pipedream"])
def test_round_trips(name: str, given: tuple[Problem, Plan], tmp_path_factory: pytest.TempPathFactory) -> None:
    made, plan = given
    text = TARGETS[name].write(arrange(made, plan), "order.csv")
    if name == "megatron":
        (line,) = [line for line in text.splitlines() if "layout" in line]
        text = line.partition("'")[2].rstrip("'")
    path = tmp_path_factory.mktemp(name) / "layout.txt"
    path.write_text(text)
    contents = read_layout(str(path)).contents(made.profile.graph, 4)
    operators = made.profile.graph.operators
    assert [tuple(operators[op].name for op in ops) for ops in contents] == [s.operators for s in plan.stages]


def test_a_v_is_for_torchtitan() -> None:
    pins = Pins(tensor_parallel=1, pipeline=4, data_parallel=1, virtual_stages=2, micro_batch=1)
    made = problem(devices=4, mini_batch=16, pins=pins, **TINY)
    plan = planned(made)
    vee = replace(plan, stages=tuple(replace(s, devices=(min(k, 7 - k),)) for k, s in enumerate(plan.stages)))
    assert arrange(made, vee).stands("v")
    assert '"ZBVZeroBubble"' in TARGETS["torchtitan"].write(arrange(made, vee), "order.csv")
    assert "not placed in turn" in TARGETS["megatron"].refusal(made, vee)
    assert '"PipelineScheduleMulti"' in TARGETS["torchtitan"].write(arrange(made, plan), "order.csv")


def test_whole_stages_that_recompute_need_equal_numbers_of_layers(given: tuple[Problem, Plan]) -> None:
    made, plan = given
    stages = tuple(replace(stage, recompute="stage") for stage in plan.stages)
    counts = {sum(name.startswith("layers.") for name in stage.operators) for stage in stages}
    refusal = TARGETS["megatron"].refusal(made, replace(plan, stages=stages))
    assert ("different numbers of layers" in refusal) == (len(counts) > 1)
    some = replace(plan, stages=(stages[0], *plan.stages[1:]))
    assert "some stages or layers recompute" in TARGETS["megatron"].refusal(made, some)


def test_torchtitan_refuses_what_it_would_not_run() -> None:
    """Tied tables under pipeline parallelism raise there."""
    pins = Pins(tensor_parallel=1, pipeline=2, data_parallel=2, virtual_stages=1, micro_batch=2)
    tied = problem(devices=4, mini_batch=16, pins=pins, tied=True, **TINY)
    assert "share a table" in TARGETS["torchtitan"].refusal(tied, planned(tied))


def test_megatron_interleaves_whole_groups_over_several_ranks() -> None:
    pins = Pins(tensor_parallel=1, pipeline=4, data_parallel=1, virtual_stages=2, micro_batch=1)
    made = problem(devices=4, mini_batch=16, pins=pins, **TINY)
    plan = planned(made)
    assert "6 micro-batches in groups of 4" in TARGETS["megatron"].refusal(replace(made, mini_batch=6), plan)
    alone = replace(plan, stages=tuple(replace(stage, devices=(0,)) for stage in plan.stages))
    assert "8 stages on one rank" in TARGETS["megatron"].refusal(made, alone)


def test_pipedream_takes_one_size_of_ways_whose_collectives_are_told_apart(given: tuple[Problem, Plan]) -> None:
    """Profiles that are priced with a framework say them at every size."""
    made, plan = given
    costs = made.profile.costs[0]
    operators = tuple(
        replace(
            each,
            alternatives=tuple(
                replace(way, forward_collective_s=way.forward_s, backward_collective_s=way.backward_s)
                for way in each.alternatives
            ),
        )
        for each in costs.operators
    )
    told = replace(made, profile=replace(made.profile, costs=(replace(costs, operators=operators),)))
    assert TARGETS["pipedream"].refusal(told, plan) == ""
    one = only(told.profile, None, 2).costs[0].operators[1].alternatives[0]
    assert one.forward_collective_s == one.forward_s == operators[1].alternatives[0].forward_s[1:2]


def test_no_path_of_a_module_is_code(given: tuple[Problem, Plan]) -> None:
    made, plan = given
    path = 'x": print("mine"), "y\\\n'
    graph = made.profile.graph
    first = plan.stages[1].operators[0]
    operators = tuple(
        replace(each, path=path if each.name == first else each.path or each.name) for each in graph.operators
    )
    made = replace(made, profile=replace(made.profile, graph=replace(graph, operators=operators)))
    text = pipelining.text(arrange(made, plan))
    (points,) = [each for each in ast.walk(ast.parse(text)) if isinstance(each, ast.Dict)]
    assert ast.literal_eval(points.keys[0]) == path
    assert "print" not in [each.id for each in ast.walk(ast.parse(text)) if isinstance(each, ast.Name)]


def test_one_stage_is_no_pipeline() -> None:
    pins = Pins(tensor_parallel=1, pipeline=1, data_parallel=2, virtual_stages=1, micro_batch=2)
    made = problem(devices=2, mini_batch=8, pins=pins, **TINY)
    text = TARGETS["pipelining"].write(arrange(made, planned(made)), "")
    assert "split_spec" not in text
    assert "one stage: there is nothing to split" in text
