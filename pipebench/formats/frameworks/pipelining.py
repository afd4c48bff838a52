"""A plan as the split_spec of torch.distributed.pipelining."""

import json

from pipebench.domain.problem import Problem
from pipebench.domain.recomputation import RecomputePin
from pipebench.formats.frameworks.arrangement import Arrangement
from pipebench.formats.frameworks.facts import TORCHTITAN, framework_family
from pipebench.formats.frameworks.requirements import (
    CannotExpress,
    least_holders,
    require_plain_products,
    require_whole_experts,
    require_whole_sequences,
    require_whole_weights,
)

REVISION = "torch 2.10.0"
WHOLE = "its pipelines keep weights and gradients whole"
SPLITS = "pipeline() splits a model and shares out nothing"


def split_points(made: Arrangement) -> list[str]:
    """The dotted path of the first module of each stage but the first. Raises CannotExpress."""
    paths = [operators[0].path for operators in made.operators[1:]]
    owner: dict[str, int] = {}
    for position, operators in enumerate(made.operators):
        for operator in operators:
            if not operator.path:
                raise CannotExpress(f"operator {operator.name!r} names no module of the model (its path is empty)")
            if owner.setdefault(operator.path, position) != position:
                raise CannotExpress(f"a cut inside module {operator.path!r}, which runs as one")
    return paths


def refuse(problem: Problem) -> None:
    """Raises CannotExpress where no plan of the problem can be expressed."""
    require_whole_weights(problem.regime, least_holders(problem), WHOLE)
    require_plain_products(problem)
    require_whole_experts(problem, SPLITS)
    require_whole_sequences(problem, SPLITS)


def text(made: Arrangement) -> str:
    """A Python snippet. Recomputation and precision are no part of pipeline(): it says what to add."""
    refuse(made.problem)
    require_whole_weights(made.problem.regime, made.holders, WHOLE)
    made.require_plain_products()
    regime = made.problem.regime
    notes = [
        f"TP {made.tensor_parallel}, DP {made.data_parallel}, {made.pipeline} ranks of {made.virtual} stages, "
        f"global batch {made.problem.mini_batch}, recompute {made.recompute}",
        *_recomputation(made),
    ]
    if regime.precision != "fp32":
        notes.append(f"yours to add: {regime.precision} weights and activations, as the plan counts them")
        notes.append(f"yours to add: gradients in {regime.gradient_precision or regime.precision}")
    if made.shards_optimizer:
        group = f", process_group= of {made.holders // made.copies} ranks" if made.copies > 1 else ""
        notes.append(f"optimizer: torch.distributed.optim.ZeroRedundancyOptimizer{group}")
    return _split(made) + "".join(f"# {note}\n" for note in notes)


def _split(made: Arrangement) -> str:
    listed = split_points(made)
    if not listed:
        return (
            "# one stage: there is nothing to split, so no pipeline(); train the model as it is, each step "
            f"{made.rounds} micro-batches of {made.micro_batch} a replica\n"
        )
    points = "".join(f"        {json.dumps(path)}: SplitPoint.BEGINNING,\n" for path in listed)
    return (
        "from torch.distributed.pipelining import SplitPoint, pipeline\n\n"
        "pipe = pipeline(\n    model,\n    mb_args=(input_ids,),  # one micro-batch: "
        f"{made.micro_batch} x sequence ids; {made.rounds} micro-batches\n"
        f"    split_spec={{\n{points}    }},\n)\n"
    )


def _recomputation(made: Arrangement) -> list[str]:
    """pipeline() takes no model that is wrapped already; the modules of its stages can be wrapped."""
    what = _CHECKPOINTED.get(made.recompute)
    if what is None:
        return []
    step = made.problem.regime.step
    if made.recompute == "selective" and step is not None and framework_family(step.framework) == TORCHTITAN:
        what = "each layer, with torchtitan's policy of what is kept"
    if made.modules:
        what = f"{', '.join(made.modules)} of each layer (by Megatron-LM's names)"
    where = " (checkpoint_wrapper on modules of pipe.get_stage_module(k), after pipeline())"
    return [
        f"yours to add, without it everything is kept: torch.utils.checkpoint around {what}"
        + (where if len(made.stages) > 1 else "")
    ]


_CHECKPOINTED: dict[RecomputePin, str] = {
    "full": "each layer",
    "selective": "the attention of each layer alone",
    "stage": "each stage",
}
