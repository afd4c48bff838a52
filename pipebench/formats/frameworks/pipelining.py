"""A plan as the split_spec of torch.distributed.pipelining."""

from pipebench.formats.frameworks.arrangement import Arrangement, CannotExpress

REVISION = "torch 2.10.0"


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


def text(made: Arrangement) -> str:
    """A Python snippet."""
    made.require_whole_weights("its pipelines keep weights and gradients whole")
    made.require_plain_products()
    points = "".join(f'        "{path}": SplitPoint.BEGINNING,\n' for path in split_points(made))
    zero = "# optimizer: torch.distributed.optim.ZeroRedundancyOptimizer\n" if made.shards_optimizer else ""
    return (
        "from torch.distributed.pipelining import SplitPoint, pipeline\n\n"
        "pipe = pipeline(\n    model,\n    mb_args=(input_ids,),  # one micro-batch: "
        f"{made.micro_batch} x sequence ids; {made.rounds} micro-batches\n"
        f"    split_spec={{\n{points}    }},\n)\n"
        f"# TP {made.tensor_parallel}, DP {made.data_parallel}, {made.pipeline} ranks of {made.virtual} stages, "
        f"global batch {made.problem.mini_batch}, recompute {made.recompute}\n"
        f"{zero}"
    )
