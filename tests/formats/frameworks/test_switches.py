"""What blocks switch on of a plan: recomputation, precision, sharing, overlap, compilation."""

import ast
import dataclasses
import json
from typing import Any

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from pipebench.domain.framework import RecomputeModule, StepCosts
from pipebench.domain.plan import Plan
from pipebench.domain.problem import OptimizerSharding, Pins, Problem
from pipebench.domain.recomputation import RecomputePin
from pipebench.formats.frameworks import megatron, torchtitan
from pipebench.formats.frameworks.arrangement import arrange
from pipebench.formats.frameworks.requirements import CannotExpress
from pipebench.formats.frameworks.targets import TARGETS
from tests.language_models import TINY, planned, problem


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


@pytest.mark.parametrize(
    ("modules", "products", "flags"),
    [
        (("core_attn", "mlp"), UNSET, ["--recompute-granularity selective --recompute-modules core_attn mlp"]),
        (
            ("moe_act", "layernorm"),
            "fp8",
            [
                "--moe-grouped-gemm",
                "--recompute-granularity selective --recompute-modules moe_act layernorm",
                "--fp8-recipe tensorwise",
            ],
        ),
        (("layernorm",), "fp4", ["--recompute-granularity selective --recompute-modules layernorm"]),
        (("mlp",), "fp8", ["--recompute-granularity selective --recompute-modules mlp"]),
    ],
)
@pytest.mark.parametrize("pin", ["selective", "none"])
def test_modules_that_run_again_have_names(
    pin: RecomputePin, modules: tuple[RecomputeModule, ...], products: Any, flags: list[str]
) -> None:
    """And what Megatron-LM's validation asks for beside them."""
    pins = Pins(tensor_parallel=2, pipeline=2, data_parallel=1, virtual_stages=1, micro_batch=1, recompute=pin)
    made = problem(devices=4, mini_batch=16, pins=pins, **TINY)
    told = replace(made.profile.provenance, modules=modules, products=products)
    made = replace(made, profile=replace(made.profile, provenance=told))
    arranged = arrange(made, planned(made))
    lines = TARGETS["megatron"].write(arranged, "").splitlines()
    said = [line for line in lines if line.startswith(("--recompute", "--moe", "--fp8-recipe"))]
    assert sorted(said) == (sorted(flags) if pin == "selective" else [])
    if pin == "selective":
        assert f"{', '.join(modules)} recomputes" in TARGETS["torchtitan"].refusal(made, planned(made))
        if products is UNSET:
            added = f"around {', '.join(modules)} of each layer (by Megatron-LM's names)"
            assert added in TARGETS["pipelining"].write(arranged, "")


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


def test_groups_that_share_out_a_copy_each_are_said() -> None:
    """Two groups of two of four replicas; DeepSpeed has no such groups."""
    pins = Pins(tensor_parallel=1, pipeline=2, data_parallel=4, virtual_stages=1, micro_batch=4)
    whole = problem(devices=8, mini_batch=16, pins=pins, sharding="zero1", **TINY)
    made = replace(whole, regime=replace(whole.regime, sharding_ranks=2))
    for name, said, same in (
        ("megatron", "--num-distributed-optimizer-instances 2", "--use-distributed-optimizer"),
        ("pipelining", "ZeroRedundancyOptimizer, process_group= of 2 ranks", "ZeroRedundancyOptimizer"),
        (
            "torchtitan",
            "data_parallel_replicate_degree=2,\n    data_parallel_shard_degree=2,",
            "pipeline_parallel",
        ),
    ):
        assert said in TARGETS[name].write(arrange(made, planned(made)), "")
        text = TARGETS[name].write(arrange(whole, planned(whole)), "")
        assert said not in text
        assert same in text
    assert "asserts dp_replicate 2" in TARGETS["torchtitan"].write(arrange(made, planned(made)), "")
    assert "2 groups of 2 ranks share out a copy each" in TARGETS["deepspeed"].refusal(made, planned(made))


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


def with_provenance(made: Problem, **said: Any) -> Problem:
    provenance = replace(made.profile.provenance, **said)
    return replace(made, profile=replace(made.profile, provenance=provenance))


@pytest.mark.parametrize(
    ("products", "flag", "kind", "which"),
    [
        ("fp8", "--fp8-format hybrid", "Float8LinearConverter", 'filter_fqns=["lm_head"]'),
        ("fp4", "--fp4-format e2m1", "NVFP4LinearConverter", 'fqns=["layers"]'),
    ],
)
def test_products_in_fewer_bits_are_told(
    products: str, flag: str, kind: str, which: str, given: tuple[Problem, Plan]
) -> None:
    """Both frameworks multiply in 16 bits unless they are told; the others have no words for it."""
    plain, plan = given
    narrow = with_provenance(plain, products=products)
    converter = f"{kind}.Config(model_compile_enabled=True, {which})"
    for name, said in (("megatron", flag), ("torchtitan", converter)):
        assert said in TARGETS[name].write(arrange(narrow, plan), "")
        assert said.split("=")[0] not in TARGETS[name].write(arrange(plain, plan), "")
    eager = TARGETS["torchtitan"].write(arrange(priced_by(narrow, "torchtitan-eager"), plan), "")
    assert converter.replace("True", "False") in eager
    for name in ("deepspeed", "pipelining"):
        assert f"products of layers run in {products}" in TARGETS[name].refusal(narrow, plan)


@pytest.mark.parametrize(("attention", "told"), [("unfused", True), ("selective", True), ("flash", False)])
def test_unfused_attention_is_told(attention: str, told: bool, given: tuple[Problem, Plan]) -> None:
    """Megatron-LM fuses it where it can; torchtitan has no other."""
    plain, plan = given
    made = arrange(with_provenance(plain, attention=attention), plan)
    assert ("--attention-backend unfused\n" in TARGETS["megatron"].write(made, "")) == told
    assert ("the plan counts unfused kernels" in TARGETS["torchtitan"].write(made, "")) == told


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


def regime_of(made: Problem, **changes: Any) -> Problem:
    regime = replace(made.regime, **changes)
    return replace(made, profile=replace(made.profile, precision=regime.precision), regime=regime)


@pytest.mark.parametrize(
    ("stages", "framework", "off"),
    [(2, "", True), (2, "torchtitan", True), (1, "torchtitan", True), (1, "", False)],
)
def test_torchtitan_is_told_to_leave_cuda_graphs(stages: int, framework: str, off: bool) -> None:
    """They are on by default: its Trainer.Config then refuses a pipeline, and they hide what is priced."""
    pins = Pins(tensor_parallel=1, pipeline=stages, data_parallel=1, virtual_stages=1, micro_batch=1)
    made = problem(devices=stages, mini_batch=8, pins=pins, **TINY)
    made = priced_by(made, framework) if framework else made
    text = TARGETS["torchtitan"].write(arrange(made, planned(made)), "order.csv")
    ast.parse(text)
    training = text.partition("training = TrainingConfig(")[2].partition(")\n")[0]
    assert ("    disable_cuda_graphs=True,\n" in training) == off
    assert ("# CUDA graphs, usual there" in text) == (off and stages == 1)


@pytest.mark.parametrize(("framework", "said"), [("torchtitan", True), ("torchtitan-eager", True), ("", False)])
def test_torchtitan_is_told_of_the_loss_that_is_priced(framework: str, said: bool) -> None:
    """Its own configurations run head and loss in chunks, and the head's backward inside the loss."""
    pins = Pins(tensor_parallel=1, pipeline=2, data_parallel=1, virtual_stages=1, micro_batch=1)
    made = problem(devices=2, mini_batch=8, pins=pins, **TINY)
    made = priced_by(made, framework) if framework else made
    text = TARGETS["torchtitan"].write(arrange(made, planned(made)), "order.csv")
    ast.parse(text)
    assert ("loss = CrossEntropyLoss.Config(global_vocab_size=20000)" in text) == said


@pytest.mark.parametrize(
    ("precision", "gradients", "said"),
    [
        ("bf16", "fp32", ""),
        ("fp32", None, '    mixed_precision_param="float32",\n'),
        ("bf16", "bf16", "# gradients: the plan counts bf16; torchtitan reduces and keeps them in fp32"),
        ("fp16", "fp32", None),
    ],
)
def test_torchtitan_is_told_of_precision(
    precision: str, gradients: str | None, said: str | None, given: tuple[Problem, Plan]
) -> None:
    """By itself its layers run in bf16, gradients are fp32; it has no fp16."""
    made, plan = given
    other = regime_of(made, precision=precision, gradient_precision=gradients)
    target = TARGETS["torchtitan"]
    if said is None:
        assert target.refusal(other, plan) == "layers run in fp16, torchtitan's in bf16 or fp32"
        return
    text = target.write(arrange(other, plan), "order.csv")
    ast.parse(text)
    assert said in text
    assert ("mixed_precision_param" in text) == (precision == "fp32")
    assert ("# gradients" in text) == (gradients == "bf16")


def test_torchtitan_splits_sequences_where_the_plan_does() -> None:
    """With tensor parallelism it does, unless it is told."""
    pins = Pins(tensor_parallel=2, pipeline=2, data_parallel=1, virtual_stages=1, micro_batch=1)
    made = problem(devices=4, mini_batch=8, pins=pins, **TINY)
    arranged = arrange(made, planned(made))
    for splits in (True, False):
        text = TARGETS["torchtitan"].write(dataclasses.replace(arranged, sequence_parallel=splits), "")
        assert ("    enable_sequence_parallel=False,\n" in text) != splits


def test_blocks_have_the_optimizer_that_the_plan_counts(given: tuple[Problem, Plan]) -> None:
    """Megatron-LM and torchtitan run Adam unless they are told."""
    made, plan = given
    for optimizer, flags in (("adam", []), ("sgd", ["--optimizer sgd"]), ("none", [])):
        arranged = arrange(regime_of(made, optimizer=optimizer), plan)
        lines = TARGETS["megatron"].write(arranged, "").splitlines()
        assert [line for line in lines if "optimizer" in line] == flags
        assert any("the plan counts none" in line for line in megatron.comments(arranged)) == (optimizer == "none")
    titan = TARGETS["torchtitan"]
    assert "torchtitan has Adam" in titan.refusal(regime_of(made, optimizer="sgd"), plan)
    assert "# optimizer: the plan counts none" in titan.write(arrange(regime_of(made, optimizer="none"), plan), "")
    shared = regime_of(made, optimizer="sgd", optimizer_sharding="zero1")
    assert "shares out Adam's only" in TARGETS["megatron"].refusal(shared, plan)


@pytest.mark.parametrize(("precision", "gradients"), [("bf16", "fp16"), ("fp16", "bf16"), ("fp32", "bf16")])
def test_megatron_keeps_gradients_as_the_weights_or_in_fp32(
    precision: str, gradients: str, given: tuple[Problem, Plan]
) -> None:
    made, plan = given
    other = regime_of(made, precision=precision, gradient_precision=gradients)
    assert f"gradients are kept in {gradients} beside {precision}" in TARGETS["megatron"].refusal(other, plan)
