"""How a framework would start a plan: GPUs, and what it computes from them and from its own flags.

Each rule names the place in the framework that computes or asserts it, so that a reader can look it up.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from pipebench.formats.frameworks.arrangement import Arrangement

CONNECTIONS = "CUDA_DEVICE_MAX_CONNECTIONS"
"""Kernels of several streams start in the order of their calls where this variable is 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """gpus: processes of the run, one a GPU. data_parallel, accumulation: as the framework computes them from the
    number of GPUs and its flags. rules: how, in words, with the place. environment: variables without which its
    validator stops; conditions: why it asks for each, with the place.
    """

    gpus: int
    data_parallel: int
    accumulation: int
    rules: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)
    conditions: tuple[str, ...] = ()

    def lines(self) -> Iterator[str]:
        """One statement a line, for comments."""
        yield from self.rules
        for (name, value), why in zip(self.environment.items(), self.conditions, strict=True):
            yield f"environment: {name}={value} ({why})"


def _derived(made: Arrangement) -> tuple[int, int, int]:
    """GPUs that the plan uses, and the framework's quotients: data parallelism and micro-batches of a replica."""
    gpus = made.plan.devices_used * made.context_ranks
    data_parallel = gpus // (made.tensor_parallel * made.pipeline * made.context_ranks)
    return gpus, data_parallel, made.problem.mini_batch // (made.micro_batch * data_parallel)


def megatron_launch(made: Arrangement) -> Launch:
    """Megatron-LM: `validate_args` of megatron/training/arguments.py, and its calculator of micro-batches."""
    gpus, replicas, rounds = _derived(made)
    asked = made.tensor_parallel > 1
    return Launch(
        gpus=gpus,
        data_parallel=replicas,
        accumulation=rounds,
        rules=(
            f"{gpus} GPUs: Megatron-LM computes DP = {gpus} / (TP {made.tensor_parallel} x PP {made.pipeline} x "
            f"CP {made.context_ranks}) = {replicas}",
            f"gradient accumulation: {made.problem.mini_batch} / (micro-batch size {made.micro_batch} x DP "
            f"{replicas}) = {rounds} micro-batches",
        ),
        environment={CONNECTIONS: "1"} if asked else {},
        conditions=("validate_args asserts it with TP above 1 on GPUs before Blackwell",) if asked else (),
    )


def deepspeed_launch(made: Arrangement) -> Launch:
    """DeepSpeed: the batch assertion of runtime/config.py; Megatron-DeepSpeed's megatron/arguments.py."""
    gpus, replicas, rounds = _derived(made)
    split = f"num_stages {made.pipeline}"
    if made.tensor_parallel > 1:
        split = f"({split} x TP {made.tensor_parallel})"
    return Launch(
        gpus=gpus,
        data_parallel=replicas,
        accumulation=rounds,
        rules=(
            f"{gpus} GPUs: DP = {gpus} / {split} = {replicas}",
            f"gradient accumulation: {made.problem.mini_batch} / (micro-batch size {made.micro_batch} x DP "
            f"{replicas}) = {rounds}, as DeepSpeed's config asserts",
        ),
        environment={CONNECTIONS: "1"} if made.sequence_parallel else {},
        conditions=("Megatron-DeepSpeed's arguments raise without it where --sequence-parallel is on",)
        if made.sequence_parallel
        else (),
    )


def torchtitan_launch(made: Arrangement) -> Launch:
    """torchtitan: ParallelDims of distributed/parallel_dims.py, and the token counts of trainer.py.

    In a pipeline its micro-batches are num_pp_microbatches; `gradient_accumulation_steps` counts rounds of all of
    them and is 1. Without one it counts the micro-batches.
    """
    gpus, replicas, rounds = _derived(made)
    sharded = made.shards_optimizer or made.shards_weights
    copies = made.copies if sharded else made.data_parallel
    shards = replicas // copies
    counted = "num_pp_microbatches; its gradient_accumulation_steps is 1"
    if made.pipeline == 1:
        counted = "its gradient_accumulation_steps"
    return Launch(
        gpus=gpus,
        data_parallel=replicas,
        accumulation=rounds,
        rules=(
            f"{gpus} GPUs: torchtitan asserts dp_replicate {copies} x dp_shard x cp {made.context_ranks} x tp "
            f"{made.tensor_parallel} x pp {made.pipeline} = WORLD_SIZE, so dp_shard is {shards} and DP {replicas}",
            f"gradient accumulation: {made.problem.mini_batch} / (micro-batch size {made.micro_batch} x DP "
            f"{replicas}) = {rounds} micro-batches = {counted}",
        ),
    )
