"""A plan as torchtitan's module_fqns_per_model_part, and its schedule as CSV."""

from collections.abc import Iterator

from pipebench.costs.shapes.transformer import EMBEDDING, HEAD, LAYER, NORM, layer_shape
from pipebench.defaults import INTERLEAVED, ONE_F_ONE_B
from pipebench.domain.errors import PipebenchError
from pipebench.domain.framework import Framework
from pipebench.domain.problem import Problem
from pipebench.formats.frameworks.arrangement import Arrangement, shares_embedding
from pipebench.formats.frameworks.facts import TORCHTITAN, framework_family, load_framework
from pipebench.formats.frameworks.launch import torchtitan_launch
from pipebench.formats.frameworks.requirements import CannotExpress, least_holders, require_whole_weights

REVISION = "torchtitan b5bcd76c6"
SPLIT_BACKWARDS = (
    "the schedule splits backwards (I and W): there torch's stage_backward_input stops on the BlockMask of "
    "FlexAttention, torchtitan's usual attention, so its own tests of such schedules are off "
    f"(tests/integration_tests/features.py); run attn_backend varlen, or plan with --scheduler {ONE_F_ONE_B} (of "
    f"several stages a rank {INTERLEAVED})"
)
"""What to know of an order that is no order of full backwards."""


def parts(made: Arrangement) -> list[list[str]]:
    """Names of the modules of each stage, in the order of stages; every module once. Raises CannotExpress."""
    _refuse(made)
    listed = [[name_of(op.kind, op.layer) for op in operators] for operators in made.operators]
    check_parts(listed, sum(op.kind == LAYER for op in made.graph.operators), made.pipeline)
    return listed


def name_of(kind: str, layer: int | None) -> str:
    """The top-level child of a torchtitan model that an operator is."""
    return {EMBEDDING: "tok_embeddings", NORM: "norm", HEAD: "lm_head"}.get(kind, f"layers.{layer}")


def module_names(layers: int) -> list[str]:
    """The names of a decoder's children, in order."""
    return ["tok_embeddings", *(f"layers.{layer}" for layer in range(layers)), "norm", "lm_head"]


def check_parts(listed: list[list[str]], layers: int, pipeline: int) -> None:
    """torchtitan drops names that are left out and ignores those it does not know; here both are errors.

    Raises PipebenchError: a name that is unknown, twice, missing or out of order; stages that ranks do not divide.
    """
    if not listed or len(listed) % pipeline:
        raise PipebenchError(
            f"{len(listed)} parts, which {pipeline} ranks do not divide", f"write a multiple of {pipeline} lists"
        )
    wanted = module_names(layers)
    flat = [name for part in listed for name in part]
    known = set(wanted)
    for name in flat:
        if name not in known:
            hint = (
                "only whole children are understood" if name.count(".") > 1 else f"the model has {layers} layers"
            )
            raise PipebenchError(f"part names {name!r}, which the model does not have", hint)
    for name in wanted:
        if flat.count(name) != 1:
            times = "in no part: torchtitan would drop it" if name not in flat else "in several parts"
            raise PipebenchError(f"{name!r} is {times}", "name every module once")
    if flat != wanted:
        first = next(name for name, right in zip(flat, wanted, strict=True) if name != right)
        raise PipebenchError(f"{first!r} stands out of order", "list modules in the order in which they run")


def schedule_name(made: Arrangement) -> str:
    """The name that goes with a CSV: torch looks it up, the order itself comes from the file."""
    if made.stands("v"):
        return "ZBVZeroBubble"
    return "PipelineScheduleSingle" if made.virtual == 1 else "PipelineScheduleMulti"


def text(made: Arrangement, csv: str) -> str:
    """A Python snippet for torchtitan's config registry. csv: the file that holds the schedule."""
    listed = parts(made)
    rows = ",\n".join(f"        {part!r}" for part in listed)
    pipeline = (
        f'    pipeline_parallel_schedule="{schedule_name(made)}",\n'
        f'    pipeline_parallel_schedule_csv="{csv}",\n'
        f"    num_pp_microbatches={made.rounds},\n"
        f"    module_fqns_per_model_part=[\n{rows},\n    ],\n"
    )
    return (
        "parallelism = ParallelismConfig(\n"
        f"    pipeline_parallel_degree={made.pipeline},\n"
        f"    tensor_parallel_degree={made.tensor_parallel},\n"
        f"{_WHOLE_SEQUENCES if made.tensor_parallel > 1 and not made.sequence_parallel else ''}"
        f"{_data_parallel(made)}"
        f"{_experts(made)}"
        f"{_context(made)}"
        f"{pipeline if made.pipeline > 1 else ''}"
        ")\n"
        f"activation_checkpoint = {_CHECKPOINTS[made.recompute]}\n"
        f"{_compilation(made)}"
        f"{_converters(made)}"
        f"{_loss(made)}"
        f"{_training(made)}{_own_model(made)}"
        + "".join(f"# {line}\n" for line in [*_other_words(made), *torchtitan_launch(made).lines()])
    )


def _training(made: Arrangement) -> str:
    """TrainingConfig: a batch, which torchtitan counts in tokens, precision, and no CUDA graphs.

    Graphs are on unless it is told, and its Trainer.Config then stops at a pipeline
    (`_validate_cuda_graphs`). Without a pipeline they hide launches, which a price counts.
    """
    said = "    disable_cuda_graphs=True,\n" if made.pipeline > 1 or _priced_as(made) is not None else ""
    said += _PRECISIONS[made.problem.regime.precision]
    layer = next(operator for operator in made.graph.operators if operator.kind == LAYER)
    sequence = layer.dims.get("sequence")
    sequence = None if sequence is None else sequence * made.context_ranks
    replica, step = made.micro_batch, made.problem.mini_batch
    if sequence is None:
        return (
            "# TrainingConfig counts tokens; the profile says no sequence, yours times: "
            f"num_tokens_per_microbatch_per_dp_rank {replica}, num_tokens_per_train_step {step}, "
            "max_context_length 1\n" + "".join(f"#{line}\n" for line in said.splitlines())
        )
    return (
        "training = TrainingConfig(\n"
        f"    num_tokens_per_microbatch_per_dp_rank={replica * sequence},  # {replica} x {sequence}\n"
        f"    num_tokens_per_train_step={step * sequence},  # {step} x {sequence}\n"
        f"    max_context_length={sequence},\n"
        f"{said}"
        ")\n"
    )


_PRECISIONS = {"bf16": "", "fp32": '    mixed_precision_param="float32",\n'}
"""What TrainingConfig is told of a precision; bf16 it has by itself, and no other."""


def _other_words(made: Arrangement) -> Iterator[str]:
    """Where torchtitan has one way, and the plan counts another."""
    regime = made.problem.regime
    kept = regime.gradient_precision or regime.precision
    if kept != "fp32":
        yield f"gradients: the plan counts {kept}; torchtitan reduces and keeps them in fp32"
    if regime.optimizer == "none":
        yield "optimizer: the plan counts none (--optimizer adam)"
    if made.unfused:
        yield "attention: the plan counts unfused kernels; torchtitan's is fused, faster and with less memory"
    if made.pipeline == 1 and _priced_as(made) is not None:
        yield "CUDA graphs, usual there, hide launches that are priced: without that line it may be faster"


def _own_model(made: Arrangement) -> str:
    """A comment where layers are none of torchtitan's dense decoders. A profile may not say what they are."""
    layer = next(operator for operator in made.graph.operators if operator.kind == LAYER)
    try:
        shape, said = layer_shape(layer), layer.attributes
    except PipebenchError:
        return ""
    biases = shape.output_bias or shape.ffn_biases
    usual = shape.rms and shape.branches == 2 and shape.norms == 2 and not shape.parallel and not biases
    layers = [operator for operator in made.graph.operators if operator.kind == LAYER]
    differ = any((each.dims, each.attributes) != (layer.dims, layer.attributes) for each in layers)
    own = shape.wide_head_norm or shape.shared_ffn or shape.latent or shape.window or shape.chunk or differ
    if usual and not own and not any(said.get(each) for each in ("gelu", "relu", "alibi", "sinks", "router_bias")):
        return ""
    return "# its layers are not those of a Llama or a Qwen: the model with these modules is yours to register\n"


_WHOLE_SEQUENCES = "    enable_sequence_parallel=False,\n"
"""Its tensor parallelism splits sequences unless it is told."""
_CHECKPOINTS = {"none": "None", "selective": "SelectiveAC.Config()"}
_CHECKPOINTS |= dict.fromkeys(("full", "stage"), "FullAC.Config()")


def _data_parallel(made: Arrangement) -> str:
    """Replicas, or FSDP: without a pipeline weights are gathered for each pass, in one they stay gathered. Groups
    of ranks that share out a copy each are its hybrid sharding; those that share out sequences are among them.
    """
    if not (made.shards_optimizer or made.shards_weights):
        return f"    data_parallel_replicate_degree={made.data_parallel},\n"
    return (
        f"    data_parallel_replicate_degree={made.copies},\n"
        f"    data_parallel_shard_degree={made.data_parallel // made.copies},\n"
        f'    fsdp_reshard_after_forward="{"always" if made.shards_weights else "never"}",\n'
    )


def _experts(made: Arrangement) -> str:
    """Ranks that share out experts are taken among those that share out weights and those of tensor parallelism
    (`ParallelDims`): replicas that hold whole copies are none of them.
    """
    ranks = made.expert_ranks
    if ranks == 1:
        return ""
    sharded = made.shards_optimizer or made.shards_weights
    if made.tensor_parallel * (made.holders if sharded else 1) % ranks:
        raise CannotExpress(
            f"{ranks} ranks share out experts, and replicas hold copies of the weights: torchtitan takes these "
            "ranks from those of its FSDP",
            "plan with --optimizer-sharding zero3, in a pipeline zero1",
        )
    return f"    expert_parallel_degree={ranks},\n"


def _context(made: Arrangement) -> str:
    """Ranks that share out sequences are among those of its FSDP (`ParallelDims`, the mesh of dp_shard and cp):
    no weights are whole on all of them.
    """
    ranks = made.context_ranks
    if ranks == 1:
        return ""
    if not (made.shards_optimizer or made.shards_weights):
        raise CannotExpress(
            f"{ranks} ranks share out sequences and hold copies of the weights: torchtitan takes these ranks into "
            "its FSDP",
            "plan with --optimizer-sharding zero3, in a pipeline zero1",
        )
    return f'    context_parallel_degree={ranks},\n    context_parallel_rotate_method="allgather",\n'


def _priced_as(made: Arrangement) -> Framework | None:
    """torchtitan or a variant of it, where the plan is priced so."""
    step = made.problem.regime.step
    if step is None or framework_family(step.framework) != TORCHTITAN:
        return None
    return load_framework(step.framework)


def _compilation(made: Arrangement) -> str:
    """What the prices took for granted: by itself torchtitan compiles nothing. Without a price nothing is said but
    that it overlaps tensor parallelism in compiled layers.
    """
    framework = _priced_as(made)
    if framework is not None and framework.elementwise == "eager":
        return "# compile: none\n"
    overlap = "enable_async_tensor_parallel=True, " if made.tensor_overlap else ""
    return f'compile = CompileConfig(enable=True, {overlap}components=["model"])\n' if framework or overlap else ""


def _converters(made: Arrangement) -> str:
    """What swaps the products of layers for those in fewer bits; the head keeps its own, as it is priced."""
    if made.products is None:
        return ""
    framework = _priced_as(made)
    compiled = framework is None or framework.elementwise != "eager"
    kind, which = _CONVERTERS[made.products]
    return (
        f"converters = [{kind}.Config(model_compile_enabled={compiled}, {which})]"
        "  # of your model's model_registry(...)\n"
    )


_CONVERTERS = {
    "fp8": ("Float8LinearConverter", 'filter_fqns=["lm_head"]'),
    "fp4": ("NVFP4LinearConverter", 'fqns=["layers"]'),
}


def _loss(made: Arrangement) -> str:
    """Of whole logits, as prices count it. torchtitan's own configurations have a ChunkedLossWrapper, which runs
    the head in chunks of tokens and its backward in the same call: less memory, and other tasks.
    """
    entries = [op.dims["entries"] for op in made.graph.operators if op.kind == EMBEDDING and "entries" in op.dims]
    if _priced_as(made) is None or not entries:
        return ""
    return (
        f"loss = CrossEntropyLoss.Config(global_vocab_size={entries[0]})"
        "  # priced so; ChunkedLossWrapper takes less memory\n"
    )


def refuse(problem: Problem) -> None:
    """Raises CannotExpress where no plan of the problem can be expressed."""
    regime, graph = problem.regime, problem.profile.graph
    if regime.precision not in _PRECISIONS:
        raise CannotExpress(
            f"layers run in {regime.precision}, torchtitan's in bf16 or fp32", "plan with --precision bf16"
        )
    if regime.optimizer == "sgd":
        raise CannotExpress(
            "the optimizer is sgd; torchtitan has Adam, AdamW and Muon", "plan with --optimizer adam"
        )
    kinds = {operator.kind for operator in graph.operators}
    if not kinds <= {EMBEDDING, LAYER, NORM, HEAD} or LAYER not in kinds:
        raise CannotExpress("no llama-like language model: torchtitan knows tok_embeddings, layers, norm, lm_head")
    _refuse_pipeline(problem, problem.pins.pipeline or 1, least_holders(problem))


def _refuse_pipeline(problem: Problem, pipeline: int, holders: int) -> None:
    """What a pipeline of several ranks cannot have."""
    if pipeline == 1:
        return
    if shares_embedding(problem.profile.graph):
        raise CannotExpress("embedding and head share a table, which torchtitan refuses with pipeline parallelism")
    require_whole_weights(
        problem.regime, holders, "torchtitan's pipelines keep what they gather until the last micro-batch"
    )


def _refuse(made: Arrangement) -> None:
    refuse(made.problem)
    _refuse_pipeline(made.problem, made.pipeline, made.holders)
    if made.pipeline == 1 and made.shards_optimizer:
        raise CannotExpress(
            "the optimizer state alone is shared out (ZeRO-1); without a pipeline torchtitan's FSDP shares out "
            "weights and gradients too: --optimizer-sharding zero3"
        )
    framework = _priced_as(made)
    if made.tensor_overlap and framework is not None and framework.elementwise == "eager":
        raise CannotExpress(
            "products run beside the collectives of tensor parallelism (tensor_overlap=on), which torchtitan does "
            "in compiled layers only: --framework torchtitan"
        )
    if made.recompute == "selective" and framework is None:
        raise CannotExpress(
            f"{', '.join(made.modules) or 'the core of attention alone'} recomputes; torchtitan's selective "
            "checkpointing keeps other operators: it is priced with --framework torchtitan"
        )
    if not (made.stands("in-turn") or made.stands("v")):
        raise CannotExpress("stages are placed neither in turn (k % pp) nor in a V, all that torchtitan knows")
