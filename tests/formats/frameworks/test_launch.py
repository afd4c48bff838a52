"""What exported blocks say of a run, against what the frameworks compute from the same flags."""

import json
import re

import pytest
from msgspec.structs import replace

from pipebench.domain.plan import Plan
from pipebench.domain.problem import OptimizerSharding, Pins, Problem
from pipebench.formats.frameworks import megatron
from pipebench.formats.frameworks.arrangement import arrange
from pipebench.formats.frameworks.targets import TARGETS, Target
from tests.language_models import TINY, planned, problem

LAUNCHED = [target for target in TARGETS.values() if target.launch is not None]
DEGREES = [(1, 2, 2, 1), (2, 2, 1, 2), (2, 1, 4, 1), (1, 1, 8, 2), (4, 2, 1, 4)]
"""Tensor, pipeline and data parallelism, samples of a replica."""
ENVIRONMENT = "CUDA_DEVICE_MAX_CONNECTIONS"


def given(
    tensor: int, stages: int, replicas: int, each: int, mini_batch: int = 32, sharding: OptimizerSharding = "none"
) -> tuple[Problem, Plan]:
    pins = Pins(
        tensor_parallel=tensor, pipeline=stages, data_parallel=replicas, virtual_stages=1, micro_batch_size=each
    )
    asked = problem(
        devices=tensor * stages * replicas, mini_batch=mini_batch, pins=pins, sharding=sharding, **TINY
    )
    return asked, planned(asked)


def block(target: Target, asked: Problem, plan: Plan) -> str:
    made = target.can_express(asked, plan)
    comments = megatron.comments(made) if target.name == "megatron" else []
    return "".join(f"# {line}\n" for line in comments) + target.write(made, "order.csv")


def number(pattern: str, text: str) -> int:
    (found,) = re.findall(pattern, text)
    return int(found)


@pytest.mark.parametrize("degrees", DEGREES)
def test_megatron_computes_the_same(degrees: tuple[int, int, int, int]) -> None:
    """DP = world_size // (tp * pp * cp); micro-batches = global // (micro * DP)."""
    text = block(TARGETS["megatron"], *given(*degrees))
    world = number(r"^# (\d+) GPUs", text)
    tensor = number(r"--tensor-model-parallel-size (\d+)", text)
    stages = number(r"--pipeline-model-parallel-size (\d+)", text)
    assert world == degrees[0] * degrees[1] * degrees[2]
    assert world % (tensor * stages) == 0
    replicas = world // (tensor * stages)
    assert replicas == degrees[2] == number(r"CP 1\) = (\d+)", text)
    size, whole = number(r"--micro-batch-size (\d+)", text), number(r"--global-batch-size (\d+)", text)
    assert size == degrees[3]
    assert whole % (size * replicas) == 0
    assert number(r"= (\d+) micro-batches", text) == whole // (size * replicas)


@pytest.mark.parametrize("degrees", DEGREES)
def test_deepspeed_s_batch_assertion_holds(degrees: tuple[int, int, int, int]) -> None:
    """train_batch_size == train_micro_batch_size_per_gpu * gradient_accumulation_steps * data parallelism."""
    text = block(TARGETS["deepspeed"], *given(*degrees))
    world = number(r"# (\d+) GPUs", text)
    replicas = world // (number(r"num_pp=(\d+)", text) * number(r"num_mp=(\d+)", text))
    config = json.loads(text.split('"""')[1])
    steps, size = config["gradient_accumulation_steps"], config["train_micro_batch_size_per_gpu"]
    assert config["train_batch_size"] == size * steps * replicas
    assert (world, replicas, size) == (degrees[0] * degrees[1] * degrees[2], degrees[2], degrees[3])
    assert number(r"x DP \d+\) = (\d+)", text) == steps
    assert number(r"num_dp=(\d+)", text) == replicas


@pytest.mark.parametrize("degrees", DEGREES)
def test_torchtitan_s_degrees_make_the_world(degrees: tuple[int, int, int, int]) -> None:
    """dp_shard = world // (dp_replicate * cp * tp * pp), and the product of all is the world."""
    text = block(TARGETS["torchtitan"], *given(*degrees))
    world = number(r"# (\d+) GPUs", text)
    replicate = number(r"data_parallel_replicate_degree=(\d+)", text)
    rest = (
        replicate * number(r"tensor_parallel_degree=(\d+)", text) * number(r"pipeline_parallel_degree=(\d+)", text)
    )
    shard = world // rest
    assert shard == number(r"dp_shard is (\d+)", text) == 1
    assert rest * shard == world
    rounds, tokens = number(r"= (\d+) micro-batches", text), number(r"per_microbatch_per_dp_rank=(\d+)", text)
    assert tokens == degrees[3] * number(r"max_context_length=(\d+)", text)
    assert number(r"num_tokens_per_train_step=(\d+)", text) == tokens * rounds * replicate * shard
    assert "global_batch_size" not in text
    if degrees[1] > 1:
        assert number(r"num_pp_microbatches=(\d+)", text) == rounds
        assert "its gradient_accumulation_steps is 1" in text
    else:
        assert "pp_microbatches" not in text
        assert "pipeline_parallel_schedule" not in text
        assert f"= {rounds} micro-batches = its gradient_accumulation_steps" in text


def test_torchtitan_counts_no_tokens_where_the_profile_says_no_sequence() -> None:
    asked, plan = given(1, 2, 1, 2)
    graph = asked.profile.graph
    operators = tuple(
        replace(operator, dims={name: size for name, size in operator.dims.items() if name != "sequence"})
        for operator in graph.operators
    )
    untold = replace(asked, profile=replace(asked.profile, graph=replace(graph, operators=operators)))
    text = block(TARGETS["torchtitan"], untold, plan)
    assert "TrainingConfig(" not in text
    assert "# TrainingConfig counts tokens" in text
    assert "num_tokens_per_train_step 32" in text


@pytest.mark.parametrize(("sharding", "stages"), [("zero1", 2), ("zero3", 1)])
def test_torchtitan_s_shards_make_the_world(sharding: OptimizerSharding, stages: int) -> None:
    """dp_shard = world // (dp_replicate * cp * tp * pp) with one copy."""
    asked, plan = given(2, stages, 4, 1, sharding=sharding)
    text = block(TARGETS["torchtitan"], asked, plan)
    world, shard = number(r"# (\d+) GPUs", text), number(r"data_parallel_shard_degree=(\d+)", text)
    assert number(r"data_parallel_replicate_degree=(\d+)", text) == 1
    assert shard == number(r"dp_shard is (\d+)", text) == world // (2 * stages) == 4


@pytest.mark.parametrize("target", LAUNCHED, ids=lambda target: target.name)
@pytest.mark.parametrize("degrees", DEGREES)
def test_accumulation_is_the_number_of_micro_batches_of_the_plan(
    target: Target, degrees: tuple[int, int, int, int]
) -> None:
    asked, plan = given(*degrees)
    assert target.launch is not None
    launch = target.launch(arrange(asked, plan))
    assert launch.accumulation == asked.mini_batch // plan.stages[0].micro_batch
    assert launch.gpus == plan.devices_used


@pytest.mark.parametrize(("tensor", "needed"), [(1, False), (2, True)])
def test_megatron_demands_one_connection_with_tensor_parallelism(tensor: int, needed: bool) -> None:
    text = block(TARGETS["megatron"], *given(tensor, 2, 1, 1))
    assert (f"environment: {ENVIRONMENT}=1" in text) == needed


@pytest.mark.parametrize(("tensor", "needed"), [(1, False), (2, True)])
def test_deepspeed_names_it_for_sequence_parallelism(tensor: int, needed: bool) -> None:
    asked, plan = given(tensor, 2, 1, 1)
    assert arrange(asked, plan).sequence_parallel == needed
    assert (f"environment: {ENVIRONMENT}=1" in block(TARGETS["deepspeed"], asked, plan)) == needed


def test_torchtitan_demands_no_variable() -> None:
    assert "environment" not in block(TARGETS["torchtitan"], *given(2, 2, 1, 1))
