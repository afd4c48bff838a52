"""Megatron-LM: the grammar of --pipeline-model-parallel-layout, and a plan as its flags."""

import re
from collections.abc import Sequence
from itertools import groupby

from pipebench.costs.shapes.transformer import EMBEDDING, FURTHER, HEAD, LAYER, NORM, POSITIONS
from pipebench.domain.errors import PipebenchError
from pipebench.domain.graph import OperatorGraph
from pipebench.domain.problem import Problem, Regime
from pipebench.domain.profile import NarrowPrecision
from pipebench.domain.recomputation import RecomputePin
from pipebench.formats.frameworks.arrangement import Arrangement
from pipebench.formats.frameworks.facts import TORCHTITAN, framework_family
from pipebench.formats.frameworks.launch import megatron_launch
from pipebench.formats.frameworks.megatron_hybrid import (
    HYBRID_EXCLUSIVE,
    hybrid_flags,
    hybrid_unsaid,
    is_hybrid,
    pattern,
    require_hybrid,
)
from pipebench.formats.frameworks.megatron_model import model_flags, unsaid
from pipebench.formats.frameworks.requirements import (
    CannotExpress,
    least_holders,
    require_other_recomputation,
    require_whole_weights,
)

MOST_SYMBOLS = 100_000
_GROUP = re.compile(r"\(([^()]+)\)\*(\d{1,6})", re.ASCII)
_SYMBOL = re.compile(r"([EtmL|])\*(\d{1,6})", re.ASCII)
EXAMPLE = "such as Et*3|(tt|)*29,m|L"


def parse_layout(text: str) -> tuple[str, ...]:
    """The symbols of each stage. Raises PipebenchError: spaces, nesting, unknown symbols, too many of them."""
    if not text:
        raise PipebenchError("the layout is empty", EXAMPLE)
    if re.search(r"\s", text):
        joined = _short("".join(text.split()))
        raise PipebenchError(f"layout {_short(text)}: holds a space", f"Megatron takes none: {joined}")
    expanded = _expand_repeats(_expand_repeats(text.replace(",", ""), _GROUP), _SYMBOL)
    wrong = next((letter for letter in expanded if letter not in "EtmL|"), None)
    if wrong is not None:
        raise PipebenchError(f"layout {_short(text)}: {_why(wrong)}", EXAMPLE)
    return tuple(expanded.split("|"))


def check_layout(stages: Sequence[str], pipeline: int, layers: int, mtp_layers: int = 0) -> int:
    """The number of virtual stages of each rank. Raises PipebenchError for the first rule that is broken."""
    virtual, left = divmod(len(stages), pipeline)
    if left or not virtual:
        raise PipebenchError(
            f"the layout has {len(stages)} stages, which pipeline parallelism {pipeline} does not divide",
            f"use a multiple of {pipeline} stages, or one of pp {_divisors(len(stages))}",
        )
    flat = "".join(stages)
    for symbol, what, place, which in (("E", "embedding", 0, "first"), ("L", "loss", -1, "last")):
        if flat.count(symbol) != 1:
            raise PipebenchError(f"the layout has {flat.count(symbol)} {symbol} ({what}), not exactly one")
        if flat[place] != symbol:
            raise PipebenchError(f"the {which} symbol must be {symbol} ({what}), it is {flat[place]}")
    if flat.count("t") != layers:
        raise PipebenchError(
            f"the layout has {flat.count('t')} decoder layers, the model {layers}", "is it for another model?"
        )
    if flat.count("m") != mtp_layers:
        raise PipebenchError(f"the layout has {flat.count('m')} MTP layers (m), the model {mtp_layers}")
    _check_mtp(stages, flat, pipeline, virtual)
    return virtual


def _check_mtp(stages: Sequence[str], flat: str, pipeline: int, virtual: int) -> None:
    if "m" not in flat:
        return
    if "t" in flat[flat.index("m") :]:
        raise PipebenchError("a decoder layer (t) stands after an MTP layer (m)")
    holders = [position for position, stage in enumerate(stages) if "m" in stage]
    if len(holders) > 1:
        raise PipebenchError(f"MTP layers (m) are in stages {holders}, all must be in one")
    if holders[0] // pipeline != virtual - 1:
        raise PipebenchError(
            f"MTP layers (m) are in stage {holders[0]}, which is not the last of rank {holders[0] % pipeline}"
        )


def write_layout(stages: Sequence[str]) -> str:
    """The shortest of these forms: runs of a symbol as t*n, runs of equal stages as (…|)*n."""
    parts: list[str] = []
    body, last = list(stages[:-1]), _layout_stage(stages[-1])
    for stage, run in groupby(body):
        count, text = len(list(run)), _layout_stage(stage) + "|"
        parts.append(text * count if count < 3 else f"({text})*{count}")
    made = "".join(part + ("," if part[-1].isdigit() else "") for part in parts) + last
    assert parse_layout(made) == tuple(stages)
    return made


def _layout_stage(symbols: str) -> str:
    parts = []
    for symbol, run in groupby(symbols):
        count = len(list(run))
        parts.append(symbol * count if count < 3 else f"{symbol}*{count}")
    return ",".join(parts) if any("*" in part for part in parts[:-1]) else "".join(parts)


def _expand_repeats(text: str, pattern: "re.Pattern[str]") -> str:
    size = len(text) + sum(len(found[1]) * int(found[2]) for found in pattern.finditer(text))
    if size > MOST_SYMBOLS:
        raise PipebenchError(f"the layout stands for about {size} symbols, at most {MOST_SYMBOLS} are read")
    return pattern.sub(lambda found: found[1] * int(found[2]), text)


def _why(letter: str) -> str:
    if letter in "()":
        return "parentheses that nest, do not match or lack *n; write (…)*n, groups do not nest"
    if letter == "*" or letter.isdigit():
        return f"{letter!r} repeats nothing; write t*3 or (tt|)*3"
    return f"unknown symbol {letter!r}; E embedding, t layer, m MTP layer, L loss, all case-sensitive"


def _divisors(number: int) -> str:
    return ", ".join(str(each) for each in range(1, number + 1) if number % each == 0)


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")


REVISION = "Megatron-LM d98e8a64dd"
FRAMEWORKS = ("megatron", "megatron-v2")
"""Whose step its flags switch on, by the names of `--framework`."""
EXCLUSIVE = (
    "not together with --num-layers-per-virtual-pipeline-stage, --num-virtual-stages-per-pipeline-rank, "
    "--decoder-first/last-pipeline-num-layers, --account-for-* or --hybrid-layer-pattern"
)
NARROW_FLAGS: dict[NarrowPrecision, str] = {"fp8": "--fp8-format hybrid", "fp4": "--fp4-format e2m1"}
"""Products of layers in fewer bits, by its usual recipe."""
SYMBOLS = {EMBEDDING: "E", POSITIONS: "", LAYER: "t", FURTHER: "m", NORM: "", HEAD: "L"}


def layout_stages(made: Arrangement) -> tuple[str, ...]:
    """The symbols of each stage. Raises CannotExpress with the reason."""
    _require_layers(made.graph)
    _require_turns(made)
    stages = []
    for position, operators in enumerate(made.operators):
        symbols = "".join(SYMBOLS[operator.kind] for operator in operators)
        if not symbols:
            what = operators[0].name
            raise CannotExpress(f"stage {position} holds {what!r} alone, which Megatron does not place by itself")
        if any(op.kind == POSITIONS for op in operators) and "E" not in symbols:
            raise CannotExpress(f"stage {position} holds the positions, which are part of the embedding (E)")
        stages.append(symbols)
    _require_groups(made, [stage.count("t") for stage in stages])
    return tuple(stages)


def layout_text(made: Arrangement) -> str:
    """Which layers each stage has, as the flag for it takes it. Raises CannotExpress."""
    return "|".join(_hybrid_stages(made)) if is_hybrid(made.graph) else write_layout(layout_stages(made))


def _hybrid_stages(made: Arrangement) -> tuple[str, ...]:
    """The letters of each stage. Raises CannotExpress."""
    _require_turns(made)
    stages = pattern(made)
    _require_groups(made, list(map(len, stages)))
    return stages


def _require_layers(graph: OperatorGraph) -> None:
    """Raise CannotExpress for a model that is no row of embedding, layers and head."""
    kinds = {operator.kind for operator in graph.operators}
    if not kinds <= set(SYMBOLS) or LAYER not in kinds:
        raise CannotExpress("the model is no language model of embedding, layers and head (see --config)")


def _require_turns(made: Arrangement) -> None:
    """Raise CannotExpress where ranks do not take stages in turn, as Megatron-LM runs them."""
    if not made.stands("in-turn"):
        raise CannotExpress("stages are not placed in turn: Megatron runs stage k on rank k % pp")
    if made.virtual > 1 and made.pipeline == 1:
        raise CannotExpress(
            f"{made.virtual} stages on one rank: Megatron interleaves over several", "plan with --vpp 1"
        )
    if made.virtual > 1 and made.rounds % made.pipeline:
        raise CannotExpress(
            f"{made.rounds} micro-batches in groups of {made.pipeline}: Megatron interleaves whole groups only",
            "plan with --vpp 1",
        )


def _require_groups(made: Arrangement, layers: Sequence[int]) -> None:
    """Raise CannotExpress where whole stages recompute and are not alike. layers: of each stage."""
    if made.recompute == "stage" and len({count for count in layers if count}) > 1:
        raise CannotExpress(
            "whole stages recompute and have different numbers of layers; Megatron's groups are of one size",
            "plan with --recompute full",
        )


def refuse(problem: Problem) -> None:
    """Raises CannotExpress where no plan of the problem can be expressed."""
    _refuse_ways(problem.regime, least_holders(problem), problem.pins.recompute)
    if is_hybrid(problem.profile.graph):
        require_hybrid(problem.profile.graph)
    else:
        _require_layers(problem.profile.graph)


def _refuse_ways(regime: Regime, holders: int, recompute: RecomputePin | None) -> None:
    require_whole_weights(regime, holders, "no block for Megatron-LM's own FSDP was tried")
    if regime.step is not None and framework_family(regime.step.framework) == TORCHTITAN:
        require_other_recomputation(
            recompute,
            "selective",
            "torchtitan's selective checkpointing keeps other operators than Megatron-LM's",
            "price it with --framework megatron",
        )


def flags(made: Arrangement) -> str:
    """The flag block, a flag a line. Raises CannotExpress."""
    refuse(made.problem)
    _refuse_ways(made.problem.regime, made.holders, made.recompute)
    hybrid = is_hybrid(made.graph)
    if hybrid:
        counts = list(map(len, _hybrid_stages(made)))
    else:
        stages = layout_stages(made)
        counts = [stage.count("t") for stage in stages]
        further = sum(operator.kind == FURTHER for operator in made.graph.operators)
        check_layout(stages, made.pipeline, sum(counts), further)
    problem = made.problem
    lines = [
        *(hybrid_flags(made) if hybrid else model_flags(made, sum(counts))),
        f"--tensor-model-parallel-size {made.tensor_parallel}",
        f"--pipeline-model-parallel-size {made.pipeline}",
        f"--{'hybrid-layer-pattern' if hybrid else 'pipeline-model-parallel-layout'} '{layout_text(made)}'",
        *_experts(made),
        *_context(made),
        f"--micro-batch-size {made.micro_batch}",
        f"--global-batch-size {problem.mini_batch}",
    ]
    if made.sequence_parallel:
        lines.append("--sequence-parallel")
    if made.tensor_overlap:
        lines.append("--tp-comm-overlap")
    if problem.regime.shards_optimizer:
        lines.append("--use-distributed-optimizer")
        lines += [f"--num-distributed-optimizer-instances {made.copies}"] if made.copies > 1 else []
    if problem.regime.precision != "fp32":
        lines.append(f"--{problem.regime.precision}")
    if made.products is not None:
        lines.append(NARROW_FLAGS[made.products])
    if made.unfused:
        lines.append("--attention-backend unfused")
    lines += _gradients(problem.regime)
    lines += _optimizer(problem.regime)
    lines += _overlap(made)
    lines += _recompute(made, counts)
    return "\n".join(lines) + "\n"


def _experts(made: Arrangement) -> list[str]:
    """Ranks that share out experts: each holds its experts whole, whatever tensor parallelism splits (Megatron-LM
    would split them too unless it is told), and runs their products together, as they are priced.
    """
    if made.expert_ranks == 1:
        return []
    if made.tensor_parallel > 1 and not made.sequence_parallel:
        raise CannotExpress(
            "experts under tensor parallelism without sequence parallelism, which Megatron-LM does not train"
        )
    return [
        f"--expert-model-parallel-size {made.expert_ranks}",
        "--expert-tensor-parallel-size 1",
        "--moe-grouped-gemm",
        "--moe-token-dispatcher-type alltoall",
    ]


def _context(made: Arrangement) -> list[str]:
    """Ranks that share out sequences: keys and values go from rank to rank, as they are priced.

    Its attention does so in TransformerEngine alone, fused (`validate_args`, `TransformerConfig`).
    """
    if made.context_ranks == 1:
        return []
    return [
        f"--context-parallel-size {made.context_ranks}",
        "--cp-comm-type p2p",
        "--transformer-impl transformer_engine",
    ]


def comments(made: Arrangement) -> list[str]:
    """What to know besides: GPUs and what follows from them, the environment, flags that exclude these."""
    hybrid = is_hybrid(made.graph)
    return [
        *megatron_launch(made).lines(),
        HYBRID_EXCLUSIVE if hybrid else EXCLUSIVE,
        *(
            ["optimizer: the plan counts none, Megatron-LM's usual one is Adam (--optimizer adam)"]
            if made.problem.regime.optimizer == "none"
            else []
        ),
        *(
            f"no flag says this of the model, its layer specification is yours: {what}"
            for what in (hybrid_unsaid(made) if hybrid else unsaid(made))
        ),
        "flags that do not bear on the plan (base of rotations, epsilon of norms, tokenizer, data) are yours",
        "the final norm runs with the last layer's or the head's stage, as Megatron places it",
    ]


def _gradients(regime: Regime) -> list[str]:
    """Megatron keeps gradients in fp32 beside bf16 weights, and in fp16 beside fp16 ones, unless it is told.

    Raises CannotExpress for gradients of neither the weights' precision nor fp32.
    """
    kept = regime.gradient_precision or regime.precision
    if (regime.precision, kept) == ("bf16", "bf16"):
        return ["--grad-reduce-in-bf16"]
    if (regime.precision, kept) == ("fp16", "fp32"):
        return ["--accumulate-allreduce-grads-in-fp32"]
    if kept not in ("fp32", regime.precision):
        raise CannotExpress(
            f"gradients are kept in {kept} beside {regime.precision} weights",
            "plan with --gradient-precision fp32",
        )
    return []


def _optimizer(regime: Regime) -> list[str]:
    """Adam is usual. Its distributed optimizer takes no SGD (`DistributedOptimizer` of core/optimizer)."""
    if regime.optimizer != "sgd":
        return []
    if regime.shards_optimizer:
        raise CannotExpress(
            "the state of sgd is shared out, Megatron-LM shares out Adam's only",
            "plan with --optimizer adam or --optimizer-sharding none",
        )
    return ["--optimizer sgd"]


def _overlap(made: Arrangement) -> list[str]:
    """What hides the exchange of replicas behind backward and forward: off by default, on where it is priced so.

    A price hides a share of what replicas exchange: with the distributed optimizer gradients and weights. There
    `validate_args` asks for the optimizer and for the overlap of gradients before that of weights.
    """
    regime = made.problem.regime
    step = regime.step
    if made.holders == 1 or step is None or not step.reduce_overlap:
        return []
    if framework_family(step.framework) not in FRAMEWORKS:
        return []
    return ["--overlap-grad-reduce", *(["--overlap-param-gather"] if regime.shards_optimizer else [])]


def _demanded(made: Arrangement) -> list[str]:
    """What `TransformerConfig` asks for where these modules run again: experts' products in one, and in 8 bits
    scales that are not those of earlier steps.
    """
    if not {"moe_act", "layernorm"} & set(made.modules):
        return []
    scales = ["--fp8-recipe tensorwise"] if made.products == "fp8" else []
    return [*(["--moe-grouped-gemm"] if "moe_act" in made.modules and made.expert_ranks == 1 else []), *scales]


def _recompute(made: Arrangement, layers: Sequence[int]) -> list[str]:
    """layers: of each stage."""
    if made.recompute == "none":
        return []
    if made.recompute == "selective":
        named = f" --recompute-modules {' '.join(made.modules)}" if made.modules else ""
        return [f"--recompute-granularity selective{named}", *_demanded(made)]
    size = 1 if made.recompute == "full" else max(layers)
    return [f"--recompute-granularity full --recompute-method uniform --recompute-num-layers {size}"]
