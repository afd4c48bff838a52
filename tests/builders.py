"""Small problems and plans for tests, in integer nanoseconds and bytes."""

from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from pipebench.domain.cluster import Cluster, DeviceType, LinkLevel, LinkMode
from pipebench.domain.graph import Operator, OperatorGraph, Parameter, Tensor
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Pins, Problem, Regime, RegimeMode
from pipebench.domain.profile import DeviceCosts, OperatorCosts, Profile


def cluster(
    devices: int,
    memory: int = 10**15,
    bandwidth: float = 1e9,
    latency_s: float = 0.0,
    link_mode: LinkMode = "half",
) -> Cluster:
    """A flat cluster of one device type; 1e9 bytes/s is one byte a nanosecond."""
    return Cluster(
        name="flat",
        types=(DeviceType(name="gpu", memory_bytes=memory),),
        devices=("gpu",) * devices,
        levels=(LinkLevel(name="flat", group=devices, latency_s=latency_s, bandwidth_bytes_s=bandwidth),),
        link_mode=link_mode,
    )


def nodes(
    devices: int,
    size: int = 2,
    *,
    within: float = 4e9,
    between: float = 1e9,
    shared: float | None = 1e9,
    latency_s: float = 0.0,
    memory: int = 10**15,
    link_mode: LinkMode = "full",
) -> Cluster:
    """Nodes of so many devices. within, between: bytes/s of a device; shared: of a node, to all others."""
    outer = LinkLevel(
        name="network",
        group=devices,
        latency_s=latency_s,
        bandwidth_bytes_s=between,
        shared_bandwidth_bytes_s=shared,
    )
    return replace(
        cluster(devices, memory, link_mode=link_mode),
        levels=(LinkLevel(name="node", group=size, bandwidth_bytes_s=within), outer),
    )


def dag_problem(
    forward: Sequence[int],
    backward: Sequence[int],
    tensors: Sequence[tuple[int, Sequence[int], int]],
    on: Cluster,
    *,
    weights: Sequence[int] | None = None,
    saved: Sequence[int] | None = None,
    mode: RegimeMode = "sync",
    mini_batch: int = 1,
    micro_batches: Sequence[int] = (1,),
    pins: Pins | None = None,
) -> Problem:
    """Operators op0, op1, … with times in ns for a micro-batch of one sample (proportional, or the same at
    every size listed in micro_batches). tensors: (producer, consumers, bytes a sample).
    """
    names = [f"op{i}" for i in range(len(forward))]
    weights = weights or [0] * len(names)
    saved = saved or [0] * len(names)
    made = [
        Tensor(
            name=f"t{i}",
            producer=names[producer],
            forward_bytes_per_sample=float(size),
            gradient_bytes_per_sample=float(size),
        )
        for i, (producer, _, size) in enumerate(tensors)
    ]
    operators = [
        Operator(
            name=name,
            kind="op",
            inputs=tuple(f"t{t}" for t, (_, consumers, _) in enumerate(tensors) if i in consumers),
            parameters=(f"w{i}",) if weights[i] else (),
        )
        for i, name in enumerate(names)
    ]
    graph = OperatorGraph(
        name="test",
        operators=tuple(operators),
        tensors=tuple(made),
        parameters=tuple(Parameter(name=f"w{i}", bytes=w) for i, w in enumerate(weights) if w),
    )
    costs = tuple(
        OperatorCosts(
            operator=name,
            forward_s=(forward[i] / 1e9,) * len(micro_batches),
            backward_s=(backward[i] / 1e9,) * len(micro_batches),
            saved_bytes_per_sample=float(saved[i]),
        )
        for i, name in enumerate(names)
    )
    profile = Profile(
        name="test",
        graph=graph,
        costs=(DeviceCosts(device_type="gpu", micro_batches=tuple(micro_batches), operators=costs),),
    )
    return Problem(
        profile=profile, cluster=on, mini_batch=mini_batch, regime=Regime(mode=mode), pins=pins or Pins()
    )


def chain_problem(
    forward: Sequence[int],
    backward: Sequence[int],
    on: Cluster,
    *,
    activations: Sequence[int] | None = None,
    weights: Sequence[int] | None = None,
    saved: Sequence[int] | None = None,
    mode: RegimeMode = "async",
    mini_batch: int = 1,
    pins: Pins | None = None,
) -> Problem:
    """A chain of layers. activations: bytes a_0 … a_L as in MadPipe; layer l saves a_{l-1} unless `saved`."""
    layers = len(forward)
    activations = activations or [0] * (layers + 1)
    return dag_problem(
        forward,
        backward,
        [(i, (i + 1,), activations[i + 1]) for i in range(layers - 1)],
        on,
        weights=weights,
        saved=saved or activations[:layers],
        mode=mode,
        mini_batch=mini_batch,
        pins=pins,
    )


def stages_plan(
    groups: Sequence[Sequence[int]],
    *,
    micro_batch: int = 1,
    replicas: Sequence[int] | None = None,
    in_flight: Sequence[int] | None = None,
    order_edges: Sequence[tuple[int, int]] = (),
) -> Plan:
    """A plan with one stage for each group of operator numbers, on consecutive devices."""
    replicas = replicas or [1] * len(groups)
    stages = []
    first = 0
    for i, group in enumerate(groups):
        stages.append(
            Stage(
                operators=tuple(f"op{o}" for o in group),
                devices=tuple(range(first, first + replicas[i])),
                data_parallel=replicas[i],
                micro_batch=micro_batch,
                in_flight=in_flight[i] if in_flight else 0,
            )
        )
        first += replicas[i]
    return Plan(stages=tuple(stages), order_edges=tuple(order_edges))


def mirrored_plan(
    groups: Sequence[Sequence[int]], *, micro_batch: int = 1, replicas: int = 1, copies: int = 1
) -> Plan:
    """Two pipelines of a stage for each group: there on consecutive device sets, and back."""
    there = stages_plan(groups, micro_batch=micro_batch, replicas=[replicas] * len(groups)).stages
    back = tuple(
        msgspec.structs.replace(stage, devices=opposite.devices)
        for stage, opposite in zip(there, reversed(there), strict=True)
    )
    return Plan(stages=there + back, placement="mirrored", pipelines=2, copies=copies)


def with_model_inputs(problem: Problem, inputs: Mapping[str, tuple[Sequence[int], int]]) -> Problem:
    """The problem with inputs of the model: name to the numbers of the operators that read it, bytes a sample."""
    graph = problem.profile.graph
    operators = tuple(
        msgspec.structs.replace(
            op, inputs=(*op.inputs, *(name for name, (readers, _) in inputs.items() if i in readers))
        )
        for i, op in enumerate(graph.operators)
    )
    made = tuple(
        Tensor(name=name, forward_bytes_per_sample=float(size), gradient_bytes_per_sample=0.0)
        for name, (_, size) in inputs.items()
    )
    graph = msgspec.structs.replace(graph, operators=operators, tensors=(*graph.tensors, *made))
    return msgspec.structs.replace(problem, profile=msgspec.structs.replace(problem.profile, graph=graph))
