"""Whether a log is of the run that a plan describes: all that both say, side by side."""

from collections.abc import Collection, Iterator

from msgspec import UNSET

from pipebench.bench.accuracy.assumptions import Choices, NotExpressed
from pipebench.bench.accuracy.expression import precision_of
from pipebench.bench.accuracy.framework import (
    ASYNCHRONOUS,
    SPLITS_SEQUENCES,
    framework_of,
    is_torchtitan,
    megatron_vocabulary,
    recomputation_of,
    says,
    sharding_of,
    sharding_ranks_of,
)
from pipebench.bench.accuracy.run import Run
from pipebench.bench.accuracy.sizes import GATED, architecture_of, sizes_of
from pipebench.costs.shapes.transformer import ATTENTION, EMBEDDING, FEED_FORWARD, LAYER, STACKED, layer_shape
from pipebench.defaults import ONE_F_ONE_B
from pipebench.domain.errors import PipebenchError
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.formats.frameworks.arrangement import Arrangement, arrange
from pipebench.formats.frameworks.requirements import CannotExpress

Said = int | str | bool | None
"""What a log says; None: nothing."""
GATED_BRANCHES = 2
"""Branches of a gated feed-forward."""


def require_same_run(run: Run, problem: Problem, plan: Plan) -> None:
    """Raise PipebenchError where a log says another run than the plan is of, with all that differs."""
    try:
        made = arrange(problem, plan, inside_layers=True)
    except CannotExpress as error:
        raise PipebenchError(
            f"{run.source}: no framework runs this plan: {error.message}", "attach traces, or another row"
        ) from None
    other = [
        f"{what} {_word(said)}, the plan has {', '.join(map(_word, sorted(there, key=str)))}"
        for what, said, there in (*_layout(run, made), *_model(run, made), *_setting(run, made))
        if said is not None and there and said not in there
    ]
    if other:
        raise PipebenchError(
            f"{run.source}: the log of another run: {'; '.join(other)}",
            "attach it to a row of its own layout: --tp, --pp, --dp, --micro-batch-size and --recompute pin one, "
            "compare --plans takes its cut",
        )


Compared = tuple[str, Said, set[Said]]
"""The name of a figure, the log's, and those that the plan may have; none where it does not tell."""


def _word(said: Said) -> str:
    return ("off", "on")[said] if isinstance(said, bool) else str(said)


def _layout(run: Run, made: Arrangement) -> Iterator[Compared]:
    """Degrees, batches and cuts. One that the log leaves out follows from the others."""
    stages_of_a_device = run.vpp or (1 if run.schedule == ONE_F_ONE_B else None)
    layers = [sum(operator.kind in STACKED for operator in stage) for stage in made.operators]
    yield "devices", run.gpus, {made.plan.devices_used * made.context_ranks}
    yield "mini-batch", run.gbs, {made.problem.mini_batch}
    yield "tensor parallelism", run.tp, {made.tensor_parallel}
    yield "devices in a row", run.pp, {made.pipeline}
    yield "stages of a device", stages_of_a_device, {made.virtual}
    yield "replicas", run.dp, {made.data_parallel}
    yield "context parallelism", run.cp, {made.context_ranks}
    yield "micro-batch of a replica", run.mbs, {made.micro_batch}
    yield "layers of the stages", run.partition or None, {"-".join(map(str, layers))} if any(layers) else set()


def _model(run: Run, made: Arrangement) -> Iterator[Compared]:
    """Sizes and architecture of the model."""
    sizes = sizes_of(run)
    layers = [operator for operator in made.graph.operators if operator.kind in STACKED]
    yield "layers", sizes.get("layers"), {len(layers)} if layers else set()
    attention, feed_forward = (LAYER, ATTENTION), (LAYER, FEED_FORWARD)
    for what, name, kinds in (
        ("width", "hidden", STACKED),
        ("heads", "heads", attention),
        ("key and value heads", "kv_heads", attention),
        ("feed-forward width", "ffn", feed_forward),
    ):
        yield what, sizes.get(name), {*_dims(made, kinds, name)}
    yield "tokens of a sample", run.seq, {each * made.context_ranks for each in _dims(made, STACKED, "sequence")}
    architecture = architecture_of(run.model)
    gated: Said = None if architecture is None else architecture in GATED
    shapes = [layer_shape(layer) for layer in layers if layer.kind in feed_forward]
    yield "a gated feed-forward", gated, {shape.branches == GATED_BRANCHES for shape in shapes}
    said, ways = sizes.get("vocab"), made.tensor_parallel
    padded = {megatron_vocabulary(entries, ways) for entries in _dims(made, (EMBEDDING,), "entries")}
    yield "padded vocabulary", said and megatron_vocabulary(said, ways), {*padded}


def _dims(made: Arrangement, kinds: tuple[str, ...], name: str) -> set[int]:
    """Values of a dim of the operators of these kinds."""
    return {each.dims[name] for each in made.graph.operators if each.kind in kinds and name in each.dims}


def _setting(run: Run, made: Arrangement) -> Iterator[Compared]:
    """What is run again, precisions, and how replicas and ranks share the work."""
    problem = made.problem
    choices = Choices({})
    try:
        framework = framework_of(run, run.device, choices)
        assumed = len(choices.made)
        degrees = made.pipeline, made.data_parallel, made.context_ranks
        sharding = sharding_of(run.framework, framework, *degrees, choices)
        groups = sharding_ranks_of(run.framework, made.data_parallel, made.context_ranks, made.expert_ranks)
    except NotExpressed as error:
        raise PipebenchError(f"{run.source}: {error.reason}, which no plan has") from None
    again, modules = recomputation_of(run.recompute)
    again = _named(again, modules)
    yield "recomputation", again or None, _recomputations(made, again, is_torchtitan(framework))
    yield "precision of products", precision_of(run) or None, {_products(problem)}
    told = len(choices.made) == assumed and made.data_parallel > 1
    yield "optimizer sharding", sharding if told else None, {problem.regime.optimizer_sharding}
    yield "ranks that share out a copy", groups if told else None, {made.holders // made.copies}
    if made.tensor_parallel > 1 and problem.regime.step is not None:
        yield "sequence parallelism", says(run.recompute, SPLITS_SEQUENCES), {made.sequence_parallel}
        yield "tensor-parallel overlap", says(run.precision, ASYNCHRONOUS), {made.tensor_overlap}


def _recomputations(made: Arrangement, said: str, torchtitan: bool) -> set[Said]:
    """The words for what the plan runs again. said: the log's. A stage of one layer runs again as its layer does.
    Megatron-LM's selective recomputation is in the profile, and its fused attention keeps no scores anyway.
    """
    if made.recompute == "stage":
        largest = max(sum(operator.kind in STACKED for operator in stage) for stage in made.operators)
        return {"stage" if largest > 1 else "full"}
    if made.recompute == "none" and said == "selective" and not torchtitan:
        return {"selective"}
    return {_named(made.recompute, made.modules)}


def _named(kind: str, modules: Collection[str]) -> str:
    """With the modules that run again, in one order."""
    return f"{kind} ({', '.join(sorted(modules))})" if modules else kind


def _products(problem: Problem) -> str:
    """The precision of the layers' products: that of the weights where the profile says no other."""
    told = problem.profile.provenance.products
    return problem.profile.precision if told is UNSET else told
