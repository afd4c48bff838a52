"""A pipeline of equal stages from a few numbers, to draw a schedule."""

from collections.abc import Sequence

from pipebench.domain.cluster import Cluster, DeviceType, LinkLevel
from pipebench.domain.errors import PipebenchError
from pipebench.domain.graph import Operator, OperatorGraph, Tensor
from pipebench.domain.placement import placement_kind_of
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem, Regime, RegimeMode
from pipebench.domain.profile import DeviceCosts, OperatorCosts, Profile, Provenance

DEVICE = "device"
TENSOR_BYTES = 1_000_000


def synthetic(
    stages: int,
    micro_batches: int,
    forward_s: float = 1.0,
    backward_s: float = 2.0,
    transfer_s: float = 0.0,
    mode: RegimeMode = "sync",
    weight_gradient_s: float = 0.0,
    devices: Sequence[int] | None = None,
    pipelines: int = 1,
) -> tuple[Problem, Plan]:
    """A chain of equal stages, and a mini-batch of so many micro-batches of one sample.

    devices: the device of each stage, pipeline after pipeline. Default: each stage has a device of its own.
    stages: number of stages of one pipeline.
    pipelines: they share the micro-batches evenly.

    Times are seconds of one micro-batch on one stage, and of one transfer in one direction. Links carry both
    directions at once. Only live micro-batches have memory, one byte each, so that memory counts them (transfer
    buffers add to it).

    Raises PipebenchError for a number of stages or micro-batches below 1, or a negative or infinite time.
    """
    for what, number in (("stages", stages), ("micro-batches", micro_batches)):
        if number < 1:
            raise PipebenchError(f"{number} {what}: at least 1 is needed")
    if not 0 <= transfer_s < float("inf"):
        raise PipebenchError(f"a transfer of {transfer_s} s: it must be finite and not negative")
    placed = range(stages * pipelines) if devices is None else devices
    if micro_batches % pipelines:
        raise PipebenchError(
            f"{micro_batches} micro-batches: {pipelines} pipelines have as many each",
            f"use a multiple of {pipelines}",
        )
    names = [f"stage{number}" for number in range(stages)]
    size = float(TENSOR_BYTES) if transfer_s else 0.0
    graph = OperatorGraph(
        name="synthetic",
        operators=tuple(
            Operator(name=name, kind="stage", inputs=(f"tensor{number - 1}",) if number else ())
            for number, name in enumerate(names)
        ),
        tensors=tuple(
            Tensor(
                name=f"tensor{number}",
                producer=name,
                forward_bytes_per_sample=size,
                gradient_bytes_per_sample=size,
            )
            for number, name in enumerate(names[:-1])
        ),
    )
    costs = tuple(
        OperatorCosts(
            operator=name,
            forward_s=(forward_s,),
            backward_s=(backward_s,),
            weight_gradient_s=(weight_gradient_s,) if weight_gradient_s else (),
            saved_bytes_per_sample=1.0,
        )
        for name in names
    )
    profile = Profile(
        name="synthetic",
        graph=graph,
        costs=(DeviceCosts(device_type=DEVICE, micro_batches=(1,), operators=costs),),
        provenance=Provenance(notes=("equal stages with the times that were asked for",)),
    )
    count = max(placed) + 1
    cluster = Cluster(
        name="synthetic",
        types=(DeviceType(name=DEVICE, memory_bytes=1 << 60),),
        devices=(DEVICE,) * count,
        levels=(LinkLevel(name="link", group=count, bandwidth_bytes_s=TENSOR_BYTES / (transfer_s or 1.0)),),
    )
    problem = Problem(profile=profile, cluster=cluster, mini_batch=micro_batches, regime=Regime(mode=mode))
    plan = Plan(
        stages=tuple(
            Stage(operators=(name,), devices=(device,), micro_batch=1)
            for name, device in zip(names * pipelines, placed, strict=True)
        ),
        placement=placement_kind_of([(device,) for device in placed], pipelines),
        pipelines=pipelines,
    )
    return problem, plan
