"""profile(graph, context): the costs of every operator on every device type that was asked for."""

from typing import cast

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from pipebench.costs.shapes.context import with_context_ranks
from pipebench.costs.shapes.experts import with_expert_ranks
from pipebench.costs.shapes.modules import modules_of
from pipebench.costs.shapes.rescale import in_precision
from pipebench.costs.shapes.transformer import LAYERS, MAMBA, layer_shape
from pipebench.domain.calibration import Calibration
from pipebench.domain.cluster import DeviceType
from pipebench.domain.errors import PipebenchError
from pipebench.domain.graph import OperatorGraph
from pipebench.domain.profile import (
    ELEMENT_BYTES,
    NARROW_BYTES,
    Alternative,
    DeviceCosts,
    OperatorCosts,
    Profile,
    Provenance,
)
from pipebench.domain.recomputation import LayerRecompute
from pipebench.hooks.context import Context, ProfileRequest
from pipebench_analytic.alternatives import (
    Split,
    degrees,
    linear_pairs,
    recompute_alternative,
    region_split,
    regions,
    split_of,
    tensor_parallel_alternative,
)
from pipebench_analytic.context import SharedSequence
from pipebench_analytic.exchange import SharedExperts
from pipebench_analytic.kernels.speeds import measured_elsewhere
from pipebench_analytic.kernels.tables import own_speeds
from pipebench_analytic.kinds import KINDS, SAVED_BYTES_DEFINITION, SavedBytes, kind_of, saved_bytes
from pipebench_analytic.language import DEFINITION as LANGUAGE
from pipebench_analytic.language import Shared, is_language, language_costs, tensor_degrees
from pipebench_analytic.plugin import AnalyticOptions
from pipebench_analytic.roofline import RatesByKind, Roofline, significant
from pipebench_analytic.speeds import Speeds
from pipebench_analytic.training import TrainingCosts
from pipebench_analytic.work import OperatorWork, graph_work

WHOLE_TENSORS = (
    "what crosses between stages is sent and buffered whole by each device; with sequence parallelism frameworks "
    "send a tensor-parallel rank's share"
)
MODELLED_EXCHANGE = (
    "what ranks that share out experts exchange is modelled, not measured: each sends its tokens at the rate of "
    "the links, and no host waits for another"
)
MODELLED_CONTEXT = (
    "what ranks that share out sequences exchange is modelled, not measured: keys and values go from rank to rank "
    "at the rate of the links, beside the steps of attention's core"
)
MODELLED_SCAN = (
    "convolution, scan and norm of Mamba-2 layers are not calibrated: their FLOP and bytes by a roofline, nothing "
    "of them was measured"
)
FORMULAS = "1"
"""Version of the profiler's formulas: a profile made with another one is not comparable."""


def profile(graph: OperatorGraph, context: Context) -> Profile:
    """A profile whose times follow from dims, bytes and the device's rates. Deterministic.

    Raises PipebenchError: a kind without a rule, a device type without the rates that are needed, profiles that
    rates cannot be fitted to.
    """
    request = cast(ProfileRequest, context.request)
    options = cast(AnalyticOptions, context.options)
    element_bytes = ELEMENT_BYTES[request.precision]
    ranks = request.expert_parallel
    graph = with_expert_ranks(in_precision(graph, request.precision), ranks, element_bytes)
    graph = with_context_ranks(graph, request.context_parallel)
    _refuse_modules(graph, request, options)
    work = graph_work(graph, element_bytes)
    saved = saved_bytes(graph, element_bytes)
    splits = _splits(graph, work)
    costs = []
    fitted, said = _calibrated_rates(options, request)
    for device in request.devices:
        roofline = Roofline(device, request.precision, options, fitted)
        degrees = tensor_degrees(graph, options.max_tensor_parallel) if device.peer_bandwidth_bytes_s > 0 else ()
        if ranks > 1:
            degrees = _with_experts(degrees, device, request, options)
        if request.context_parallel > 1:
            _refuse_context(device, request, options)
        training = _training_costs(device, request, options)
        operators = map(
            _Costing(roofline, request, degrees, training).costs,
            work,
            saved,
            splits,
        )
        costs.append(
            DeviceCosts(device_type=device.name, micro_batches=request.micro_batches, operators=tuple(operators))
        )
    return Profile(
        name=graph.name,
        graph=graph,
        precision=request.precision,
        costs=tuple(costs),
        provenance=_provenance(request, options, {each.kind for each in graph.operators}, said),
    )


def _calibrated_rates(
    options: AnalyticOptions, request: ProfileRequest
) -> tuple[RatesByKind | None, Calibration | UnsetType]:
    if not options.calibrate:
        return None, UNSET
    from pipebench_analytic.calibration import calibration

    if len(request.devices) != 1:
        raise PipebenchError("a measured profile teaches the rates of one device type", "name one with --device")
    return calibration(options, request.devices[0].name, request.precision)


def _training_costs(device: DeviceType, request: ProfileRequest, options: AnalyticOptions) -> TrainingCosts | None:
    if request.framework is None:
        for name in (
            "attention",
            "products",
            "sequence_parallel",
            "tensor_overlap",
            "recompute_modules",
            "kernels",
        ):
            if getattr(options, name):
                raise PipebenchError(f"{name}={getattr(options, name)} counts with a framework", "say --framework")
        return None
    own = own_speeds(options.kernels, device, options.multiprocessors or None) if options.kernels else None
    framework = request.framework
    if options.sequence_parallel:
        framework = replace(framework, sequence_parallel=options.sequence_parallel == "on")
    if options.tensor_overlap:
        framework = replace(framework, tensor_overlap=options.tensor_overlap == "on")
    if framework.tensor_overlap and not framework.sequence_parallel:
        raise PipebenchError(
            f"tensor_overlap=on needs sequence parallelism, which {framework.name} runs without",
            "say sequence_parallel=on as well, or leave it out",
        )
    speeds = Speeds(device, request.precision, framework, request.links, options.products, request.reach, own)
    return TrainingCosts(
        speeds,
        framework,
        options.attention or framework.attention,
        ELEMENT_BYTES[request.precision],
        request.micro_batches,
        NARROW_BYTES[options.products] if options.products else None,
        request.expert_parallel,
        request.context_parallel,
        options.modules,
    )


def _refuse_modules(graph: OperatorGraph, request: ProfileRequest, options: AnalyticOptions) -> None:
    """Raise PipebenchError where modules that are to run again are not known, or no layer has one of them."""
    framework = request.framework
    if not options.modules or framework is None:
        return
    said = f"recompute_modules={options.recompute_modules}"
    if not framework.modules:
        raise PipebenchError(
            f"{said}: {framework.name} runs no modules again by name", "say --framework megatron, or leave it out"
        )
    if "core_attn" in options.modules and options.attention == "selective":
        raise PipebenchError(
            f"{said}: with attention=selective attention's core runs again already", "say attention=unfused"
        )
    layers = [layer_shape(each, request.context_parallel) for each in graph.operators if each.kind in LAYERS]
    found = {name for shape in layers for name in modules_of(shape)}
    lacking = next((name for name in options.modules if name not in found), None)
    if lacking is not None:
        has = f"it has {', '.join(sorted(found))}" if found else "a language model has layers"
        raise PipebenchError(f"{said}: no layer of {graph.name!r} has {lacking}", has)


def _refuse_context(device: DeviceType, request: ProfileRequest, options: AnalyticOptions) -> None:
    """Raise PipebenchError where nothing says how ranks that share out sequences exchange keys and values."""
    framework = request.framework
    if device.peer_bandwidth_bytes_s <= 0:
        raise PipebenchError(
            f"device type {device.name!r}: what its peers send each other is not known",
            "ranks that share out sequences exchange keys: leave --cp out, or name a device of the table",
        )
    if framework is None:
        return
    if framework.context is None:
        raise PipebenchError(
            f"context parallelism under {framework.name} is not priced: its table says nothing of it",
            "leave --cp out, or name --framework megatron or torchtitan",
        )
    if (options.attention or framework.attention) != "flash":
        raise PipebenchError(
            f"attention={options.attention}: ranks share out sequences where attention is fused",
            "leave --cp or attention out",
        )


def _with_experts(
    degrees: tuple[int, ...], device: DeviceType, request: ProfileRequest, options: AnalyticOptions
) -> tuple[int, ...]:
    """The degrees of tensor parallelism that there are where ranks share out experts.

    Raises PipebenchError where nothing says how they exchange tokens.
    """
    framework = request.framework
    if device.peer_bandwidth_bytes_s <= 0:
        raise PipebenchError(
            f"device type {device.name!r}: what its peers send each other is not known",
            "ranks that share out experts exchange tokens: leave --ep out, or name a device of the table",
        )
    if framework is None:
        return degrees
    if framework.experts is None:
        raise PipebenchError(
            f"expert parallelism under {framework.name} is not priced: its table says nothing of experts",
            "leave --ep out, or name --framework megatron",
        )
    split = framework.sequence_parallel if not options.sequence_parallel else options.sequence_parallel == "on"
    return degrees if split else ()


class _Costing:
    """Costs of operators on one device type at the sizes asked for."""

    def __init__(
        self,
        roofline: Roofline,
        request: ProfileRequest,
        degrees: tuple[int, ...],
        training: TrainingCosts | None,
    ) -> None:
        """degrees: of tensor parallelism that the whole model allows (language models).

        training: prices language models under a framework.
        """
        self._selective = request.selective
        self._shared = Shared(
            SharedExperts(request.expert_parallel, request.links),
            SharedSequence(request.context_parallel, request.links),
        )
        self._training = training
        self._roofline = roofline
        self._sizes = request.micro_batches
        self._degrees = degrees

    def costs(self, work: OperatorWork, saved: SavedBytes, split: Split | None) -> OperatorCosts:
        seconds, sizes = self._roofline.seconds, self._sizes
        if is_language(work.operator.kind) and self._training is not None:
            workspace = self._roofline.options.workspace_bytes
            return self._training.costs(
                work.operator, work.weight_bytes, self._degrees, workspace, self._selective
            )
        if is_language(work.operator.kind):
            recompute = self._roofline.options.recompute
            kinds: tuple[LayerRecompute, ...] = ("full",) if recompute else ()
            kinds += ("selective",) if self._selective else ()
            return language_costs(work, self._roofline, sizes, self._degrees, kinds, self._shared)
        kernels = work.kernels()
        weight = [seconds(kernels.weight_gradient, size) for size in sizes] if kernels.weight_gradient else []
        inputs = [seconds(kernels.input_gradient, size) for size in sizes]
        backward = [i + w for i, w in zip(inputs, weight, strict=True)] if weight else inputs
        contraction = kind_of(work.operator).contraction
        return OperatorCosts(
            operator=work.operator.name,
            forward_s=tuple(significant(seconds(kernels.forward, size)) for size in sizes),
            backward_s=tuple(map(significant, backward)),
            weight_gradient_s=tuple(map(significant, weight)),
            saved_bytes_per_sample=significant(saved.inputs + saved.own),
            workspace_bytes=self._roofline.options.workspace_bytes if contraction else 0,
            alternatives=tuple(self._alternatives(work, saved, split)),
        )

    def _alternatives(self, work: OperatorWork, saved: SavedBytes, split: Split | None) -> list[Alternative]:
        options = self._roofline.options
        found: list[Alternative] = []
        if split is not None and self._roofline.device.peer_bandwidth_bytes_s > 0:
            found += [
                tensor_parallel_alternative(work, split, saved, self._roofline, self._sizes, ways)
                for ways in degrees(work.operator, split, options.max_tensor_parallel)
            ]
        again = recompute_alternative(work, saved, self._roofline, self._sizes) if options.recompute else None
        return [*found, again] if again else found


def _splits(graph: OperatorGraph, work: tuple[OperatorWork, ...]) -> list[Split | None]:
    pairs = linear_pairs(graph)
    seconds = set(pairs.values())
    found = regions(graph)
    return [
        region_split(each, position, found)
        or split_of(each, "first" if position in pairs else "second" if position in seconds else "alone")
        for position, each in enumerate(work)
    ]


def _provenance(
    request: ProfileRequest, options: AnalyticOptions, kinds: set[str], fitted: Calibration | UnsetType
) -> Provenance:
    devices = request.devices
    language = any(map(is_language, kinds))
    unused = ["calibrate"] if fitted is UNSET else ["efficiency", "r_half", "launch_s"]
    unused += [] if options.kernels else ["multiprocessors"]
    named = [name for name in options.__struct_fields__ if name not in unused]
    elsewhere = _not_on_it(request) if language and request.framework and not options.kernels else []
    settings = ",".join(f"{name}={said}" for name in named if (said := getattr(options, name)) != "")
    return Provenance(
        profiler=f"analytic[{settings}]",
        made_by="pipebench_analytic",
        device=", ".join(device.name for device in devices),
        versions={"pipebench_analytic": FORMULAS},
        saved=LANGUAGE if language else SAVED_BYTES_DEFINITION,
        notes=(
            "computed from shapes and peak rates, nothing was run"
            if fitted is UNSET
            else "computed from shapes and rates that were fitted to measured times, nothing was run",
            "tensor-parallel alternatives send over the links inside a node",
            *((WHOLE_TENSORS,) if language and request.framework is None else ()),
            *((MODELLED_EXCHANGE,) if request.expert_parallel > 1 else ()),
            *((MODELLED_CONTEXT,) if request.context_parallel > 1 else ()),
            *((MODELLED_SCAN,) if MAMBA in kinds else ()),
            *(_priced_as(request, options.kernels) if language else ()),
            *(() if fitted is UNSET else _not_measured(kinds, fitted)),
        ),
        calibration=fitted,
        kernels="; ".join(elsewhere) if elsewhere else UNSET,
        products=options.products or UNSET,
        modules=options.modules or UNSET,
        attention=(options.attention or request.framework.attention) if language and request.framework else UNSET,
    )


def _priced_as(request: ProfileRequest, own: str) -> tuple[str, ...]:
    """The framework whose kernels and launches are priced, and whose kernels. own: a user's table.

    Devices on which none were measured are in the provenance's `kernels`.
    """
    if request.framework is None:
        return ()
    known = [each.name for each in request.devices if not measured_elsewhere(each.name)]
    measured = f"; kernels measured on {', '.join(known)}" if known else ""
    whose = f"; kernels of {own}" if own else measured
    return (f"priced as {request.framework.name} runs it{whose}",)


def _not_on_it(request: ProfileRequest) -> list[str]:
    """Lines on the devices on which no kernels were measured."""
    return [line for each in request.devices if (line := measured_elsewhere(each.name))]


def _not_measured(kinds: set[str], fitted: Calibration) -> tuple[str, ...]:
    """A note where kinds that take time have no rates of their own."""
    known = {each.kind for each in fitted.fits}
    others = sorted(kind for kind in kinds - known if KINDS[kind].contraction or KINDS[kind].forward is not None)
    where = "priced with the rates of all measured contractions, or of all other kinds, together"
    return (f"not measured, {where}: {', '.join(others)}",) if others else ()
