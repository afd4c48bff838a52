"""What each framework can be told, and what it refuses."""

import ast
import dataclasses
import json
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from pipebench.domain.errors import PipebenchError
from pipebench.domain.framework import StepCosts
from pipebench.domain.plan import Plan
from pipebench.domain.problem import OptimizerSharding, Pins, Problem
from pipebench.domain.recomputation import RecomputePin
from pipebench.formats.frameworks import deepspeed, pipelining, torchtitan
from pipebench.formats.frameworks.arrangement import CannotExpress, arrange
from pipebench.formats.frameworks.layouts import read_layout
from pipebench.formats.frameworks.targets import TARGETS, target_named
from pipebench.formats.profiles.parts import only
from pipebench.formats.profiles.pipedream_graph import parse_lines
from tests.builders import chain_problem, cluster, stages_plan
from tests.language_models import TINY, planned, problem

NAMES = list(TARGETS)


@pytest.fixture(scope="module")
def given() -> tuple[Problem, Plan]:
    """Eight layers on four stages of two devices."""
    pins = Pins(tensor_parallel=2, pipeline=4, data_parallel=1, virtual_stages=1, micro_batch=1, recompute="none")
    made = problem(devices=8, mini_batch=16, pins=pins, **TINY)
    return made, planned(made)


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


@pytest.mark.parametrize(
    ("pin", "flags", "torchtitan"),
    [
        ("none", "", "activation_checkpoint = None\n"),
        (
            "full",
            "--recompute-granularity full --recompute-method uniform --recompute-num-layers 1",
            "activation_checkpoint = FullAC.Config()\n",
        ),
        ("selective", "--recompute-granularity selective", ""),
    ],
)
def test_layers_that_recompute_have_flags(pin: RecomputePin, flags: str, torchtitan: str) -> None:
    pins = Pins(tensor_parallel=2, pipeline=2, data_parallel=1, virtual_stages=1, micro_batch=1, recompute=pin)
    made = problem(devices=4, mini_batch=16, pins=pins, **TINY)
    plan = planned(made)
    assert arrange(made, plan).recompute == pin
    lines = TARGETS["megatron"].write(arrange(made, plan), "").splitlines()
    assert [line for line in lines if "recompute" in line] == ([flags] if flags else [])
    if torchtitan:
        assert torchtitan in TARGETS["torchtitan"].write(arrange(made, plan), "order.csv")
    else:
        assert "selective checkpointing keeps other operators" in TARGETS["torchtitan"].refusal(made, plan)
    deep = TARGETS["deepspeed"]
    if pin == "selective":
        assert "whole layers again" in deep.refusal(made, plan)
    else:
        assert (
            "activation_checkpoint_interval=1,\n    checkpointable_layers=" in deep.write(arrange(made, plan), "")
        ) == (pin == "full")
    added = "yours to add, without it everything is kept" in TARGETS["pipelining"].write(arrange(made, plan), "")
    assert added == (pin != "none")


def test_torchtitan_refuses_what_it_would_not_run() -> None:
    """Tied tables under pipeline parallelism raise there."""
    pins = Pins(tensor_parallel=1, pipeline=2, data_parallel=2, virtual_stages=1, micro_batch=2)
    tied = problem(devices=4, mini_batch=16, pins=pins, tied=True, **TINY)
    assert "share a table" in TARGETS["torchtitan"].refusal(tied, planned(tied))


def priced_by(made: Problem, framework: str) -> Problem:
    step = StepCosts(framework=framework, optimizer_s_per_element=0.0)
    return replace(made, regime=replace(made.regime, step=step))


@pytest.mark.parametrize(
    ("framework", "said"),
    [
        ("torchtitan", 'compile = CompileConfig(enable=True, components=["model"])\n'),
        ("torchtitan-eager", "# compile: none\n"),
        ("megatron", None),
        ("", None),
    ],
)
def test_torchtitan_is_told_to_compile_what_was_priced_compiled(framework: str, said: str | None) -> None:
    """By itself it compiles nothing; without a price nothing is said of it."""
    pins = Pins(tensor_parallel=2, pipeline=2, data_parallel=1, virtual_stages=1, micro_batch=1)
    made = problem(devices=4, mini_batch=16, pins=pins, **TINY)
    made = priced_by(made, framework) if framework else made
    text = TARGETS["torchtitan"].write(arrange(made, planned(made)), "order.csv")
    assert said in text if said else "ompile" not in text


def test_selective_checkpoints_go_to_the_framework_that_they_were_priced_for() -> None:
    """torchtitan's keep the results of operators, Megatron-LM's run the core of attention again."""
    pins = Pins(
        tensor_parallel=1, pipeline=2, data_parallel=1, virtual_stages=1, micro_batch=1, recompute="selective"
    )
    made = problem(devices=2, mini_batch=8, pins=pins, **TINY)
    for framework, fits, other in (
        ("torchtitan", "torchtitan", "megatron"),
        ("torchtitan-eager", "torchtitan", "megatron"),
        ("megatron", "megatron", "torchtitan"),
    ):
        own = priced_by(made, framework)
        assert TARGETS[fits].refusal(own, planned(own)) == ""
        assert "keeps other operators" in TARGETS[other].refusal(own, planned(own))
    titan = priced_by(made, "torchtitan")
    text = TARGETS["torchtitan"].write(arrange(titan, planned(titan)), "order.csv")
    assert "activation_checkpoint = SelectiveAC.Config()\n" in text


def test_eager_layers_cannot_overlap_tensor_parallelism() -> None:
    pins = Pins(tensor_parallel=2, pipeline=2, data_parallel=1, virtual_stages=1, micro_batch=1)
    made = priced_by(problem(devices=4, mini_batch=16, pins=pins, **TINY), "torchtitan-eager")
    arranged = arrange(made, planned(made))
    torchtitan.parts(arranged)
    with pytest.raises(CannotExpress, match="in compiled layers only"):
        torchtitan.parts(dataclasses.replace(arranged, tensor_overlap=True))


def test_replicas_share_out_what_each_framework_shares_out() -> None:
    """In a pipeline FSDP keeps what it gathers until the last micro-batch: the optimizer alone is shared out."""
    pins = Pins(tensor_parallel=1, pipeline=2, data_parallel=2, virtual_stages=1, micro_batch=2)
    sharded = problem(devices=4, mini_batch=16, pins=pins, sharding="zero1", **TINY)
    plan = planned(sharded)
    for name, said in (
        ("megatron", "--use-distributed-optimizer"),
        ("deepspeed", '"stage": 1'),
        ("pipelining", "ZeroRedundancyOptimizer"),
        ("torchtitan", 'data_parallel_shard_degree=2,\n    fsdp_reshard_after_forward="never"'),
    ):
        assert said in TARGETS[name].write(arrange(sharded, plan), "")
    whole = problem(devices=4, mini_batch=16, pins=pins, sharding="zero3", **TINY)
    for name in ("megatron", "deepspeed", "pipelining", "torchtitan"):
        assert "ZeRO-3" in TARGETS[name].refusal(whole, planned(whole))


def test_without_a_pipeline_torchtitan_shares_out_all() -> None:
    pins = Pins(tensor_parallel=1, pipeline=1, data_parallel=4, virtual_stages=1, micro_batch=4)
    made = {
        name: problem(devices=4, mini_batch=16, pins=pins, sharding=name, **TINY) for name in ("zero1", "zero3")
    }
    text = TARGETS["torchtitan"].write(arrange(made["zero3"], planned(made["zero3"])), "")
    assert 'data_parallel_shard_degree=4,\n    fsdp_reshard_after_forward="always"' in text
    assert "--optimizer-sharding zero3" in TARGETS["torchtitan"].refusal(made["zero1"], planned(made["zero1"]))


@pytest.mark.parametrize(
    ("precision", "gradients", "flag"),
    [
        ("bf16", "bf16", "--grad-reduce-in-bf16"),
        ("bf16", None, "--grad-reduce-in-bf16"),
        ("bf16", "fp32", ""),
        ("fp16", "fp32", "--accumulate-allreduce-grads-in-fp32"),
        ("fp16", "fp16", ""),
        ("fp32", "fp32", ""),
    ],
)
def test_megatron_is_told_of_gradients(
    precision: str, gradients: str | None, flag: str, given: tuple[Problem, Plan]
) -> None:
    """Its own: fp32 beside bf16 weights, fp16 beside fp16 ones; memory is counted for what the regime says."""
    made, plan = given
    regime = replace(made.regime, precision=precision, gradient_precision=gradients)
    other = replace(made, profile=replace(made.profile, precision=precision), regime=regime)
    lines = TARGETS["megatron"].write(arrange(other, plan), "").splitlines()
    assert [line for line in lines if "grad" in line] == ([flag] if flag else [])


@pytest.mark.parametrize(
    ("framework", "overlap", "replicas", "sharding", "flags"),
    [
        ("megatron", 0.8, 2, "none", ["--overlap-grad-reduce"]),
        ("megatron", 0.8, 2, "zero1", ["--overlap-grad-reduce", "--overlap-param-gather"]),
        ("megatron", 0.0, 2, "zero1", []),
        ("megatron-v2", 0.0, 2, "zero1", []),
        ("megatron-v2", 0.5, 2, "none", ["--overlap-grad-reduce"]),
        ("megatron", 0.8, 1, "zero1", []),
        ("torchtitan", 0.9, 2, "zero1", []),
        ("", 0.0, 2, "zero1", []),
    ],
)
def test_megatron_is_told_to_hide_what_was_priced_hidden(
    framework: str, overlap: float, replicas: int, sharding: OptimizerSharding, flags: list[str]
) -> None:
    """Megatron-LM hides nothing by default."""
    pins = Pins(
        tensor_parallel=1, pipeline=2, data_parallel=replicas, virtual_stages=1, micro_batch=2, recompute="none"
    )
    made = problem(devices=2 * replicas, mini_batch=16, pins=pins, sharding=sharding, **TINY)
    plan = planned(made)
    step = StepCosts(framework=framework, optimizer_s_per_element=0.0, reduce_overlap=overlap)
    priced = replace(made, regime=replace(made.regime, step=step)) if framework else made
    lines = TARGETS["megatron"].write(arrange(priced, plan), "").splitlines()
    assert [line for line in lines if "overlap" in line] == flags


def test_megatron_interleaves_whole_groups_over_several_ranks() -> None:
    pins = Pins(tensor_parallel=1, pipeline=4, data_parallel=1, virtual_stages=2, micro_batch=1)
    made = problem(devices=4, mini_batch=16, pins=pins, **TINY)
    plan = planned(made)
    assert "6 micro-batches in groups of 4" in TARGETS["megatron"].refusal(replace(made, mini_batch=6), plan)
    alone = replace(plan, stages=tuple(replace(stage, devices=(0,)) for stage in plan.stages))
    assert "8 stages on one rank" in TARGETS["megatron"].refusal(made, alone)


def test_products_beside_collectives_have_a_flag() -> None:
    """Where the profile priced them so; frameworks that do not do it refuse."""
    pins = Pins(tensor_parallel=2, pipeline=2, data_parallel=1, virtual_stages=1, micro_batch=1)
    plain = problem(devices=4, mini_batch=8, pins=pins, **TINY)
    costs = plain.profile.costs[0]
    operators = tuple(
        replace(
            each,
            alternatives=tuple(replace(way, id=way.id.replace("-sp", "-sp-overlap")) for way in each.alternatives),
        )
        for each in costs.operators
    )
    beside = replace(plain, profile=replace(plain.profile, costs=(replace(costs, operators=operators),)))
    for name, flag in (("megatron", "--tp-comm-overlap"), ("torchtitan", "enable_async_tensor_parallel=True")):
        assert flag in TARGETS[name].write(arrange(beside, planned(beside)), "")
        assert flag not in TARGETS[name].write(arrange(plain, planned(plain)), "")
    said = TARGETS["torchtitan"].write(arrange(beside, planned(beside)), "")
    compiled = 'compile = CompileConfig(enable=True, enable_async_tensor_parallel=True, components=["model"])'
    assert said.count(compiled) == said.count("enable_async_tensor_parallel") == 1
    for name in ("deepspeed", "pipelining"):
        assert "tensor_overlap=on" in TARGETS[name].refusal(beside, planned(beside))


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


def test_whole_stages_run_again_in_deepspeed(given: tuple[Problem, Plan]) -> None:
    """Its usual checkpoints would leave the first stage without gradients."""
    made, plan = given
    whole = replace(plan, stages=tuple(replace(stage, recompute="stage") for stage in plan.stages))
    text = TARGETS["deepspeed"].write(arrange(made, whole), "")
    ast.parse(text)
    assert f"activation_checkpoint_interval={max(len(stage.operators) for stage in plan.stages)}," in text
    assert config_of(text)["pipeline"] == {"use_reentrant": False}


def config_of(text: str) -> dict[str, Any]:
    """The JSON in DeepSpeed's block."""
    made: dict[str, Any] = json.loads(text.split('"""')[1])
    return made


@pytest.mark.parametrize(
    ("precision", "gradients", "sharding", "kept"),
    [
        ("bf16", "fp32", "zero1", "fp32"),
        ("bf16", None, "zero1", "bf16"),
        ("fp16", "fp16", "none", None),
        ("bf16", "fp32", "none", None),
        ("fp32", None, "none", None),
    ],
)
def test_deepspeed_is_told_of_precision_and_of_sharing(
    precision: str, gradients: str | None, sharding: str, kept: str | None, given: tuple[Problem, Plan]
) -> None:
    """By default it computes in fp32. It keeps other gradients than the weights' with ZeRO alone."""
    made, plan = given
    regime = replace(made.regime, precision=precision, gradient_precision=gradients, optimizer_sharding=sharding)
    other = replace(made, profile=replace(made.profile, precision=precision), regime=regime)
    text = TARGETS["deepspeed"].write(arrange(other, plan), "")
    ast.parse(text)
    config = config_of(text)
    assert {name for name in ("bf16", "fp16") if name in config} == {precision} - {"fp32"}
    assert config["zero_optimization"] == {"stage": int(sharding == "zero1")}
    assert config.get("data_types") == ({"grad_accum_dtype": kept} if kept else None)
    assert ("the plan counts fp32; without ZeRO" in text) == (
        (precision, gradients, sharding) == ("bf16", "fp32", "none")
    )
    assert ("bf16 weights" in TARGETS["pipelining"].write(arrange(other, plan), "")) == (precision == "bf16")


def test_one_stage_is_no_pipeline() -> None:
    pins = Pins(tensor_parallel=1, pipeline=1, data_parallel=2, virtual_stages=1, micro_batch=2)
    made = problem(devices=2, mini_batch=8, pins=pins, **TINY)
    text = TARGETS["pipelining"].write(arrange(made, planned(made)), "")
    assert "split_spec" not in text
    assert "one stage: there is nothing to split" in text
