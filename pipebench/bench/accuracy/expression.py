"""A measured run as a problem whose degrees are all pinned, or the reason why the suite cannot express it."""

import re
from collections.abc import Iterable, Mapping
from math import prod
from typing import cast, get_args

from pipebench.bench.accuracy.assumptions import Assumption, Choices, NotExpressed
from pipebench.bench.accuracy.framework import (
    OVERLAPPED_REDUCTION,
    FrameworkName,
    RecomputeKind,
    Setting,
    framework_of,
    model_options,
    padded_vocabulary,
    profiler_of,
    recomputation_of,
    says,
    sequence_parallel_of,
    sharding_of,
    sharding_ranks_of,
    tensor_overlap_of,
    workload_fields,
)
from pipebench.bench.accuracy.machine import cluster_of
from pipebench.bench.accuracy.run import OPTIONAL, Run
from pipebench.bench.accuracy.schedules import Order, order_of
from pipebench.bench.accuracy.sizes import ARCHITECTURES, ModelSizes, architecture_of, public_sizes, sizes_of
from pipebench.bench.accuracy.vocabulary import USUAL_VOCABULARIES
from pipebench.costs.shapes.context import CHUNKS, with_context_devices
from pipebench.costs.shapes.modules import WITHIN_EXPERTS
from pipebench.defaults import LANGUAGE_MODEL
from pipebench.documents.units import quantity
from pipebench.domain.cluster import Cluster
from pipebench.domain.errors import InvalidValue, nearest
from pipebench.domain.framework import RecomputeModule
from pipebench.domain.limits import MOST_LAYERS, MOST_RUN_PASSES
from pipebench.domain.profile import NarrowPrecision, Precision
from pipebench.domain.tuning import Tuning
from pipebench.domain.value import Value
from pipebench.domain.workload import WorkloadSpec
from pipebench.formats.frameworks.facts import load_framework

USUAL_HEADS = (64, 96, 128)
"""Features of a head."""
_BLACKWELL = ("B200", "B300", "GB200", "GB300")
NARROW_DEVICES: dict[NarrowPrecision, tuple[str, ...]] = {
    "fp8": ("H100-SXM", "H200", "H800", "L40S", *_BLACKWELL),
    "fp4": _BLACKWELL,
}
"""Devices of the table whose products in 8 and 4 bits were measured, or those of a device with the same chip."""
RECOMPUTE, USUAL_RECOMPUTE, LESS_MEMORY = "recompute", "none", ("selective", "full")
"""The assumption on recomputation: its field, what is usual, and what takes less memory, in this order."""
MICRO_BATCH = "mbs"
"""The assumption on a replica's micro-batch: its field."""
FURTHER_TOKENS = "further tokens predicted"
"""The assumption on layers of multi-token prediction."""
ENDS = ("embedding", "head")
"""What Megatron-LM counts as a layer each where layers alone do not go evenly into stages."""
_PRECISIONS = get_args(Precision)


class ExpressedRun(Value, frozen=True, kw_only=True):
    """A run that can be simulated.

    spec: the workload, all degrees pinned; its micro-batch holds the samples of all replicas.
    cluster: its devices and links.
    scheduler: by name, options included.
    layers_by_stage: in the order of execution.
    level: whether cuts level the load of devices instead, where layers do not go evenly into stages.
    reduces_last: whether gradients are reduced after the last backward, though the framework does it beside them.
    assumptions: what the source does not say.
    tuning: calibrated constants in place of the usual ones.
    """

    id: str
    spec: WorkloadSpec
    cluster: Cluster
    scheduler: str
    layers_by_stage: tuple[int, ...]
    level: bool = False
    reduces_last: bool = False
    assumptions: tuple[Assumption, ...] = ()
    tuning: Tuning | None = None


def express(
    run: Run, replaced: Mapping[str, str] | None = None, vocabulary: int = USUAL_VOCABULARIES[0]
) -> ExpressedRun:
    """The problem of a run. replaced: other values for what is assumed, by the assumption's field.

    vocabulary: what is taken where the run says none.

    Raises NotExpressed with the reason.
    """
    choices = Choices(replaced or {})
    refuse_unsupported(run)
    tp, pp, dp = degrees(run)
    cluster = cluster_of(run, choices)
    recompute, modules = _recompute(run, choices)
    precision, narrow = _precision(run, cluster, choices)
    framework = framework_of(run, run.device.removeprefix("DGX-"), choices)
    sequence_parallel = sequence_parallel_of(run, framework, tp, choices)
    setting = Setting(
        framework=framework,
        architecture=_architecture(run),
        recompute=recompute,
        modules=_modules(modules, recompute, framework),
        precision=precision,
        products=narrow,
        sequence_parallel=sequence_parallel,
        tensor_overlap=tensor_overlap_of(run, framework, sequence_parallel, tp, choices),
        tp=tp,
    )
    _refuse_ranks(run, framework, tp * dp * (run.cp or 1))
    _refuse_context(run, framework, cluster)
    model, layers = _model(run, setting, vocabulary, choices)
    mini_batch, micro_batch = _batches(run, dp, pp, choices)
    order = order_of(run, pp, layers, choices)
    if order.stages > layers and order.stages != layers + len(ENDS):
        raise NotExpressed("more stages than layers", f"{order.stages} stages, {layers} layers")
    passes = order.stages * (mini_batch // (micro_batch * dp))
    if passes > MOST_RUN_PASSES:
        raise NotExpressed(f"more than {MOST_RUN_PASSES} passes of micro-batches", f"{passes}")
    spec = WorkloadSpec(
        model=model,
        profiler=profiler_of(setting),
        devices=run.gpus,
        mini_batch=mini_batch,
        micro_batch=micro_batch * dp,
        tp=tp,
        dp=dp,
        pp=pp,
        vpp=order.virtual,
        ep=run.ep or 1,
        cp=run.cp or 1,
        precision=setting.precision,
        optimizer_sharding=sharding_of(run.framework, framework, pp, dp, run.cp or 1, choices),
        sharding_ranks=sharding_ranks_of(run.framework, dp, run.cp or 1, run.ep or 1),
        **workload_fields(setting),
    )
    by_stage, level = _layers_by_stage(run, layers, order, choices)
    return ExpressedRun(
        id=run.id,
        spec=spec,
        cluster=cluster,
        scheduler=order.scheduler,
        layers_by_stage=by_stage,
        level=level,
        reduces_last=says(run.framework, OVERLAPPED_REDUCTION) is False,
        assumptions=choices.made,
    )


def refuse_unsupported(run: Run) -> None:
    """Raises NotExpressed for what no problem of the suite says."""
    if run.twofold:
        raise NotExpressed("the row states two configurations", f"in {' and '.join(run.twofold)}")
    if (run.ep or 1) > 1 and experts_of(run) == 1:
        raise NotExpressed("experts that the suite does not know", f"model is {run.model}, ep is {run.ep}")
    if re.search(r"\(tokendrop", run.model.lower()):
        raise NotExpressed("tokens that experts drop", f"model is {run.model}")
    if re.search(r"\((?:sft|lora)", run.model.lower()):
        raise NotExpressed("fine-tuning", f"model is {run.model}")


def experts_of(run: Run) -> int:
    """Experts of each layer of a model that is known by its name; 1 where none are known."""
    known = public_sizes(run.model)
    return 1 if known is None else known.experts


def _refuse_ranks(run: Run, framework: FrameworkName, ranks: int) -> None:
    """Raises NotExpressed where the run's ranks cannot share out its experts, or it is not known how its framework
    does that. ranks: of one stage.
    """
    if (run.ep or 1) == 1:
        return
    if framework == "other" or load_framework(framework).experts is None:
        raise NotExpressed("expert parallelism of a framework that the table says nothing of", f"{run.framework}")
    assert run.ep is not None
    if experts_of(run) % run.ep or ranks % run.ep:
        raise NotExpressed(
            "ranks of a stage that cannot share out the experts",
            f"ep is {run.ep}, a stage has {ranks} ranks, a layer {experts_of(run)} experts",
        )


def _refuse_context(run: Run, framework: FrameworkName, cluster: Cluster) -> None:
    """Raises NotExpressed where ranks cannot share out the run's sequences, or it is not known how its framework
    does that.
    """
    ranks = run.cp or 1
    if ranks == 1:
        return
    if framework == "other" or load_framework(framework).context is None:
        raise NotExpressed("context parallelism of a framework that the table says nothing of", f"{run.framework}")
    if (run.seq or 0) % (CHUNKS * ranks):
        raise NotExpressed("a sequence that ranks cannot share out", f"cp is {ranks}, seq is {run.seq}")
    try:
        with_context_devices(cluster, ranks)
    except InvalidValue as error:
        raise NotExpressed("ranks of a sequence in several groups of linked devices", error.message) from None


def degrees(run: Run) -> tuple[int, int, int]:
    """Tensor, pipeline and data parallelism; one that is missing follows from the others and from the ranks that
    share out sequences.

    Raises NotExpressed where two are missing or the product is not the number of GPUs.
    """
    said = [run.tp, run.pp, run.dp]
    if said.count(None) > 1:
        raise _empty(run, ("tp", "pp", "dp"))
    factors = [degree for degree in said if degree is not None]
    factors += [run.cp] if run.cp is not None and run.cp > 1 else []
    product = prod(factors)
    left, rest = divmod(run.gpus, product)
    if rest or (None not in said and left != 1):
        figures = f"{' x '.join(map(str, factors))} = {product}, gpus is {run.gpus}"
        raise NotExpressed("the product of the degrees is not the number of GPUs", figures)
    tp, pp, dp = (degree or left for degree in said)
    return tp, pp, dp


def _empty(run: Run, columns: Iterable[str]) -> NotExpressed:
    """What is said where some of the columns are needed and empty."""
    names = [name for name in columns if not getattr(run, name)]
    if len(names) == 1:
        return NotExpressed(f"column {names[0]} is empty")
    return NotExpressed(f"columns {', '.join(names[:-1])} and {names[-1]} are empty")


def _architecture(run: Run) -> str:
    found = architecture_of(run.model)
    if found is None:
        begin = f"model is {run.model}; names begin with {', '.join(ARCHITECTURES)}"
        raise NotExpressed("an architecture that the suite does not know", begin)
    return found


def _model(run: Run, setting: Setting, vocabulary: int, choices: Choices) -> tuple[str, int]:
    """The model `llm` with the run's sizes, and its layers."""
    sizes = sizes_of(run)
    layers, hidden = sizes.get("layers"), sizes.get("hidden")
    if not layers or not hidden or not run.seq:
        raise _empty(run, [name for name in ("layers", "hidden", "seq") if name not in sizes])
    if layers > MOST_LAYERS:
        raise NotExpressed(f"more than {MOST_LAYERS} layers", f"layers is {layers}")
    heads = sizes.get("heads", 0)
    if not heads:
        even = [hidden // width for width in USUAL_HEADS if hidden % (width * setting.tp) == 0]
        if not even:
            raise _empty(run, ("heads",))
        heads = int(choices.take("heads", even[0], even[1:]))
    if hidden % heads:
        raise NotExpressed("heads do not divide the width of the model", f"{hidden} / {heads}")
    vocab = sizes.get("vocab") or int(choices.take("vocab", vocabulary, USUAL_VOCABULARIES))
    lacking = [name for name in OPTIONAL if name not in sizes]
    if lacking and setting.architecture == "llama":
        columns = f"column{'s' * (len(lacking) > 1)} {' and '.join(lacking)}"
        raise NotExpressed(f"the sizes of a Llama are not said: add the {columns}")
    options = {
        "architecture": setting.architecture,
        "layers": layers,
        "hidden": hidden,
        "heads": heads,
        "kv_heads": sizes.get("kv_heads", 0),
        "ffn": sizes.get("ffn", 4 * hidden),
        "vocab": padded_vocabulary(vocab, setting),
        "sequence": run.seq,
        **model_options(setting),
        **_known_besides(run, choices),
    }
    said = ",".join(f"{name}={str(value).lower()}" for name, value in options.items())
    return f"{LANGUAGE_MODEL}[{said}]", layers


def _known_besides(run: Run, choices: Choices) -> dict[str, int | bool | str]:
    """Options of the model that only its name says: no column has them."""
    known = public_sizes(run.model)
    if known is None or known.experts == 1:
        return {}
    return {
        "experts": known.experts,
        "active": known.active,
        "head": known.head,
        "head_norm": known.head_norm,
        **known.besides,
        **_further(run, known, choices),
    }


def _further(run: Run, known: ModelSizes, choices: Choices) -> dict[str, int]:
    """Tokens that the model predicts besides the next one, where it can: as the row says, else as many."""
    if not known.further:
        return {}
    said = re.search(r"\((w/o?) mtp\)", run.model.lower())
    usual = str(known.further)
    count = choices.take(FURTHER_TOKENS, usual, ("0",)) if said is None else "0" if said[1] == "w/o" else usual
    return {"mtp": int(count)} if int(count) else {}


def _batches(run: Run, dp: int, pp: int, choices: Choices) -> tuple[int, int]:
    """Samples of the mini-batch and of a replica's micro-batch.

    A run without pipeline whose source names no micro-batch does not cut what a replica computes: one pass.
    """
    if not run.gbs:
        raise _empty(run, ("gbs",))
    share, rest = divmod(run.gbs, dp)
    sizes = [size for size in (1, 2, 4, 8, 16) if not rest and share % size == 0]
    if pp == 1 and share in sizes:
        sizes = [share, *sizes[:-1]]
    each = run.mbs or (int(choices.take(MICRO_BATCH, sizes[0], sizes[1:])) if sizes else 0)
    if not each or rest or share % each:
        figures = f"gbs is {run.gbs}, dp is {dp}" + (f", mbs is {each}" if each else "")
        raise NotExpressed("micro-batches of all replicas do not divide the mini-batch", figures)
    return run.gbs, each


def _recompute(run: Run, choices: Choices) -> tuple[RecomputeKind, tuple[str, ...]]:
    words = run.recompute
    if not words:
        words = choices.take(RECOMPUTE, USUAL_RECOMPUTE, LESS_MEMORY)
    kind, modules = recomputation_of(words)
    if kind not in get_args(RecomputeKind):
        valid = nearest(kind, get_args(RecomputeKind))
        raise NotExpressed("a kind of recomputation that the suite does not know", f"{kind}; {valid}")
    return cast(RecomputeKind, kind), modules


def _modules(said: tuple[str, ...], kind: RecomputeKind, framework: FrameworkName) -> tuple[RecomputeModule, ...]:
    """Modules that run again by name. Raises NotExpressed for those that suite or framework do not know."""
    if not said:
        return ()
    valid = get_args(RecomputeModule)
    for name in said:
        if name not in valid:
            reason = "a module that runs again and that the suite does not know"
            raise NotExpressed(reason, f"{name}; {nearest(name, valid)}")
    within = [name for name in WITHIN_EXPERTS if name in said and "moe" in said]
    if within:
        raise NotExpressed("a module that runs again by itself and with all of the experts", ", ".join(within))
    if kind != "selective" or framework == "other" or not load_framework(framework).modules:
        raise NotExpressed("modules that run again by name, which Megatron-LM alone knows", f"{kind}, {framework}")
    return cast(tuple[RecomputeModule, ...], said)


def precision_of(run: Run) -> str:
    """The precision of a run, a narrow one by what a device has a rate in; empty where it says none."""
    word = run.precision.lower().split("+")[0]  # `fp8+compile`: how it ran may follow
    return next((name for name in NARROW_DEVICES if name in word), word)  # MXFP8, FP8-CS, NVFP4


def _precision(run: Run, cluster: Cluster, choices: Choices) -> tuple[Precision, NarrowPrecision | None]:
    """Precision of the weights, and that of the layers' products where it has fewer bits: weights then have 16."""
    rates = cluster.types[0].peak_flops
    name = cluster.types[0].name
    narrow = [each for each, devices in NARROW_DEVICES.items() if "bf16" in rates and name.startswith(devices)]
    plain = precision_of(run)
    if not plain:
        half = [name for name in ("bf16", "fp16") if name in rates]
        usual = [each for each in narrow if each == "fp8"]
        plain = choices.take("precision", half[0] if half else "fp32", [*half[1:], *usual])
    if plain in narrow:
        return "bf16", plain
    if plain not in _PRECISIONS or plain not in rates:
        if plain in _PRECISIONS or plain in NARROW_DEVICES:
            has = f"it has {', '.join(sorted(rates))}"
            raise NotExpressed(f"no rate in {plain} for {name}", has)
        raise NotExpressed("an unknown precision", f"{plain}; {nearest(plain, rates)}")
    return cast(Precision, plain), None


def _layers_by_stage(run: Run, layers: int, order: Order, choices: Choices) -> tuple[tuple[int, ...], bool]:
    """Layers of each stage: evenly, or with embedding and head counted as a layer each.

    Of a model that predicts further tokens the last stage has what others leave it, as in the layouts of the
    recipes that Megatron-Bridge publishes (recipes/deepseek).
    """
    stages = order.stages
    if run.partition:
        said = run.partition.split("-")
        counts = tuple(int(text) for text in said if text.isdecimal())
        if len(counts) != len(said) or len(counts) != stages or sum(counts) != layers or 0 in counts:
            figures = f"{run.partition} for {layers} layers in {quantity(stages, 'stage')}"
            raise NotExpressed("the partition does not go with layers and stages", figures)
        return counts, False
    if layers % stages == 0:
        return (layers // stages,) * stages, False
    known = public_sizes(run.model)
    most = -(-layers // stages)
    left = layers - most * (stages - 1)
    if known is not None and known.further and left > 0:
        choices.take("partition", "as many layers in each stage, fewer in the last")
        return (*(most,) * (stages - 1), left), False
    each, rest = divmod(layers + len(ENDS), stages)
    if rest == 0:
        choices.take("partition", "first and last stage a layer less")
        return (each - 1, *(each,) * (stages - 2), each - 1), False
    choices.take("partition", "loads of devices as level as can be, larger stages last")
    # Fewer micro-batches are in flight in later stages: there a layer more takes the least memory.
    fewer, larger = divmod(layers, stages)
    return (fewer,) * (stages - larger) + (fewer + 1,) * larger, True
