"""A plan as the flags of Megatron-LM."""

from pipebench.costs.transformer import EMBEDDING, HEAD, LAYER, NORM, POSITIONS, layer_shape
from pipebench.domain.graph import OperatorGraph
from pipebench.domain.problem import Regime
from pipebench.formats.frameworks.arrangement import Arrangement, CannotExpress
from pipebench.formats.frameworks.megatron_layout import check_layout, write_layout

REVISION = "Megatron-LM d98e8a64dd"
EXCLUSIVE = (
    "not together with --num-layers-per-virtual-pipeline-stage, --num-virtual-stages-per-pipeline-rank, "
    "--decoder-first/last-pipeline-num-layers, --account-for-* or --hybrid-layer-pattern"
)
SYMBOLS = {EMBEDDING: "E", POSITIONS: "", LAYER: "t", NORM: "", HEAD: "L"}


def layout_stages(made: Arrangement) -> tuple[str, ...]:
    """The symbols of each stage. Raises CannotExpress with the reason."""
    kinds = {operator.kind for operator in made.graph.operators}
    if not kinds <= set(SYMBOLS) or LAYER not in kinds:
        raise CannotExpress("the model is no language model of embedding, layers and head (see --config)")
    if not made.stands("in-turn"):
        raise CannotExpress("stages are not placed in turn: Megatron runs stage k on rank k % pp")
    if made.virtual > 1 and made.pipeline == 1:
        raise CannotExpress(f"{made.virtual} stages on one rank: Megatron interleaves over several")
    if made.virtual > 1 and made.rounds % made.pipeline:
        raise CannotExpress(
            f"{made.rounds} micro-batches in groups of {made.pipeline}: Megatron interleaves whole groups only"
        )
    stages = []
    for position, operators in enumerate(made.operators):
        symbols = "".join(SYMBOLS[operator.kind] for operator in operators)
        if not symbols:
            what = operators[0].name
            raise CannotExpress(f"stage {position} holds {what!r} alone, which Megatron does not place by itself")
        if any(op.kind == POSITIONS for op in operators) and "E" not in symbols:
            raise CannotExpress(f"stage {position} holds the positions, which are part of the embedding (E)")
        stages.append(symbols)
    if made.recompute == "stage":
        counts = {stage.count("t") for stage in stages if "t" in stage}
        if len(counts) > 1:
            raise CannotExpress(
                "whole stages recompute and have different numbers of layers; Megatron's groups are of one size"
            )
    return tuple(stages)


def flags(made: Arrangement) -> str:
    """The flag block, a flag a line. Raises CannotExpress."""
    stages = layout_stages(made)
    layers = sum(operator.kind == LAYER for operator in made.graph.operators)
    check_layout(stages, made.pipeline, layers)
    problem, graph = made.problem, made.graph
    lines = [
        *_model(graph, layers, made.tied),
        f"--tensor-model-parallel-size {made.tensor_parallel}",
        f"--pipeline-model-parallel-size {made.pipeline}",
        f"--pipeline-model-parallel-layout '{write_layout(stages)}'",
        f"--micro-batch-size {made.micro_batch}",
        f"--global-batch-size {problem.mini_batch}",
    ]
    if made.sequence_parallel:
        lines.append("--sequence-parallel")
    if problem.regime.optimizer_sharding == "zero1":
        lines.append("--use-distributed-optimizer")
    if problem.regime.precision != "fp32":
        lines.append(f"--{problem.regime.precision}")
    lines += _gradients(problem.regime)
    lines += _recompute(made, stages)
    return "\n".join(lines) + "\n"


def comments(made: Arrangement) -> list[str]:
    """What to know besides: devices, order of ranks, flags that exclude these."""
    return [
        f"{made.devices} devices: TP {made.tensor_parallel} x DP {made.data_parallel} x PP {made.pipeline}, "
        f"virtual "
        f"stages {made.virtual}",
        EXCLUSIVE,
        "flags that do not bear on the plan (norms, positions, biases, tokenizer, data) are yours to add",
        "the final norm runs with the last layer's or the head's stage, as Megatron places it",
    ]


def _model(graph: OperatorGraph, layers: int, tied: bool) -> list[str]:
    shape = layer_shape(next(operator for operator in graph.operators if operator.kind == LAYER))
    lines = [
        f"--num-layers {layers}",
        f"--hidden-size {shape.hidden}",
        f"--ffn-hidden-size {shape.ffn}",
        f"--num-attention-heads {shape.heads}",
        f"--seq-length {shape.sequence}",
    ]
    if shape.kv_heads != shape.heads:
        lines.append(f"--group-query-attention --num-query-groups {shape.kv_heads}")
    if shape.head * shape.heads != shape.hidden:
        lines.append(f"--kv-channels {shape.head}")
    if shape.experts > 1:
        lines.append(f"--num-experts {shape.experts} --moe-router-topk {shape.active}")
    if shape.branches == 2:
        lines.append("--swiglu")
    if not tied:
        lines.append("--untie-embeddings-and-output-weights")
    return lines


def _gradients(regime: Regime) -> list[str]:
    """Megatron keeps gradients in fp32 beside bf16 weights, and in fp16 beside fp16 ones, unless it is told."""
    kept = regime.gradient_precision or regime.precision
    if (regime.precision, kept) == ("bf16", "bf16"):
        return ["--grad-reduce-in-bf16"]
    if (regime.precision, kept) == ("fp16", "fp32"):
        return ["--accumulate-allreduce-grads-in-fp32"]
    return []


def _recompute(made: Arrangement, stages: tuple[str, ...]) -> list[str]:
    if made.recompute == "none":
        return []
    size = 1 if made.recompute == "layers" else max(stage.count("t") for stage in stages)
    return [f"--recompute-granularity full --recompute-method uniform --recompute-num-layers {size}"]
