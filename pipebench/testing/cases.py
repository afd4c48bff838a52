"""Small problems, in integer nanoseconds and bytes, that every component of the kit meets."""

from collections.abc import Sequence

from msgspec.structs import replace

from pipebench.domain.cluster import Cluster, DeviceType, LinkLevel
from pipebench.domain.graph import Operator, OperatorGraph, Parameter, Tensor
from pipebench.domain.problem import Pins, Problem, Regime, RegimeMode
from pipebench.domain.profile import Alternative, DeviceCosts, OperatorCosts, Profile
from pipebench.domain.recomputation import of_layers

DEVICE = "gpu"
AMPLE_BYTES = 10**12
Edge = tuple[int, int, int]
"""Producer, consumer, bytes of one sample."""


def problem(
    name: str,
    mode: RegimeMode,
    devices: int,
    forward_us: Sequence[int],
    edges: Sequence[Edge],
    *,
    weight_bytes: int = 1_000_000,
    memory_bytes: int = AMPLE_BYTES,
    mini_batch: int = 8,
    sizes: Sequence[int] = (1, 2, 4),
    pins: Pins | None = None,
) -> Problem:
    """Operators op0, op1, … whose backward takes twice the forward. forward_us: of one sample, proportional.

    Links of 10 GB/s, one transfer at a time between two devices. What an operator saves is what it reads.
    """
    graph = _graph(name, len(forward_us), edges, weight_bytes)
    read = [sum(size for _, consumer, size in edges if consumer == op) for op in range(len(forward_us))]
    costs = tuple(
        OperatorCosts(
            operator=f"op{op}",
            forward_s=tuple(size * us / 1e6 for size in sizes),
            backward_s=tuple(2 * size * us / 1e6 for size in sizes),
            saved_bytes_per_sample=float(read[op] or 100_000),
        )
        for op, us in enumerate(forward_us)
    )
    profile = Profile(
        name=name,
        graph=graph,
        costs=(DeviceCosts(device_type=DEVICE, micro_batches=tuple(sizes), operators=costs),),
    )
    return Problem(
        profile=profile,
        cluster=cluster(devices, memory_bytes),
        mini_batch=mini_batch,
        regime=Regime(mode=mode),
        pins=pins or Pins(),
    )


def cluster(devices: int, memory_bytes: int = AMPLE_BYTES) -> Cluster:
    """One level of half-duplex links between devices of one type."""
    return Cluster(
        name="small",
        types=(DeviceType(name=DEVICE, memory_bytes=memory_bytes),),
        devices=(DEVICE,) * devices,
        levels=(LinkLevel(name="link", group=devices, bandwidth_bytes_s=1e10),),
        link_mode="half",
    )


def chain_edges(operators: int, size: int = 200_000) -> list[Edge]:
    """Each operator feeds the next."""
    return [(op, op + 1, size) for op in range(operators - 1)]


def _graph(name: str, operators: int, edges: Sequence[Edge], weight_bytes: int) -> OperatorGraph:
    producers = sorted({producer for producer, _, _ in edges})
    made = tuple(
        Tensor(
            name=f"t{producer}",
            producer=f"op{producer}",
            forward_bytes_per_sample=float(size),
            gradient_bytes_per_sample=float(size),
        )
        for producer in producers
        for size in [max(size for before, _, size in edges if before == producer)]
    )
    return OperatorGraph(
        name=name,
        operators=tuple(
            Operator(
                name=f"op{op}",
                kind="matmul",
                inputs=tuple(f"t{before}" for before, after, _ in edges if after == op),
                parameters=(f"w{op}",),
            )
            for op in range(operators)
        ),
        tensors=made,
        parameters=tuple(Parameter(name=f"w{op}", bytes=weight_bytes) for op in range(operators)),
    )


CHAIN_US = (300, 500, 200, 700, 400, 600)
LINE_US = (*CHAIN_US, 350, 450)
DAG_US = (200, 600, 300, 500, 400, 250)
DAG_EDGES = ((0, 1, 200_000), (0, 3, 200_000), (1, 2, 100_000), (3, 4, 150_000), (2, 5, 50_000), (4, 5, 80_000))
DAG_DECLARED = (3, 0, 5, 1, 4, 2)
STARVED_BYTES = 1_000


def chain(mode: RegimeMode, pins: Pins | None = None) -> Problem:
    """Six operators in a line, four devices."""
    return problem("chain", mode, 4, CHAIN_US, chain_edges(6), pins=pins)


def layers(mode: RegimeMode, pins: Pins) -> Problem:
    """The chain where each operator is a layer that can run again as a whole, or half of it."""
    plain = chain(mode)
    profile = plain.profile
    named = tuple(replace(operator, layer=layer) for layer, operator in enumerate(profile.graph.operators))
    made = tuple(
        replace(each, operators=tuple(_with_recomputation(costs, profile.graph) for costs in each.operators))
        for each in profile.costs
    )
    layered = replace(profile, graph=replace(profile.graph, operators=named), costs=made)
    return replace(plain, profile=layered, pins=pins)


def pinned(mode: RegimeMode, pins: Pins) -> Problem:
    """The chain with these pins, of layers where they are about layers."""
    return layers(mode, pins) if of_layers(pins.recompute) else chain(mode, pins)


def _with_recomputation(costs: OperatorCosts, graph: OperatorGraph) -> OperatorCosts:
    weights = sum(graph.parameter_bytes[name] for name in graph.operators[graph.index[costs.operator]].parameters)
    ways = tuple(
        Alternative(
            id=name,
            recompute=True,
            selective=name == "selective",
            forward_s=costs.forward_s,
            backward_s=tuple(b + f * share for f, b in zip(costs.forward_s, costs.backward_s, strict=True)),
            parameter_bytes=weights,
            saved_bytes_per_sample=costs.saved_bytes_per_sample * (1 - share / 2),
            transient_bytes_per_sample=costs.saved_bytes_per_sample * share / 2,
        )
        for name, share in (("recompute", 1.0), ("selective", 0.5))
    )
    return replace(costs, alternatives=ways)


def dag(mode: RegimeMode) -> Problem:
    """Two branches between a common source and a common sink, four devices.

    Its operators are declared in another order than they can run in, as those of a file may be.
    """
    made = problem("dag", mode, 4, DAG_US, DAG_EDGES)
    profile = made.profile
    operators = tuple(profile.graph.operators[position] for position in DAG_DECLARED)
    costs = tuple(
        replace(each, operators=tuple(each.operators[position] for position in DAG_DECLARED))
        for each in profile.costs
    )
    graph = replace(profile.graph, operators=operators)
    return replace(made, profile=replace(profile, graph=graph, costs=costs))


PROBLEM_CASES = ("tiny", "chain", "dag", "one-device", "spare-devices")


def problem_case(name: str, mode: RegimeMode) -> Problem:
    """One of CASES: each has a valid plan, one device that runs everything among others."""
    if name == "tiny":
        return problem("tiny", mode, 2, (500,), (), mini_batch=4)
    if name == "one-device":
        return problem("one-device", mode, 1, CHAIN_US, chain_edges(6))
    if name == "spare-devices":
        return problem("spare-devices", mode, 8, (500, 400), chain_edges(2))
    return dag(mode) if name == "dag" else chain(mode)


def starved_chain(mode: RegimeMode) -> Problem:
    """The chain on devices that hold no operator's weights: nothing fits, provably."""
    return with_memory(chain(mode), STARVED_BYTES)


LARGE_OPERATORS = 62


def large(mode: RegimeMode, more_us: Sequence[int] = (0,) * LARGE_OPERATORS) -> Problem:
    """Sixty operators in three branches on eight devices: a search has something to do.

    more_us: for each operator, so that two problems differ.
    """
    us = [100 + 37 * op % 411 + more_us[op] for op in range(LARGE_OPERATORS)]
    edges = [(0, 1, 90_000), (0, 21, 80_000), (0, 41, 70_000)]
    edges += [(op, op + 1, 40_000 + 10_000 * (op % 7)) for op in range(1, 61) if op % 20]
    edges += [(20, 61, 60_000), (40, 61, 60_000), (60, 61, 60_000)]
    return problem("large", mode, 8, us, edges, mini_batch=64, sizes=(1, 2, 4, 8))


PINNED: dict[str, Pins] = {
    "micro_batch": Pins(micro_batch=2),
    "micro_batch_size": Pins(micro_batch_size=2),
    "pipeline": Pins(pipeline=2),
    "data_parallel": Pins(data_parallel=2),
    "tensor_parallel": Pins(tensor_parallel=2),
    "recompute": Pins(recompute="stage"),
    "recompute full": Pins(recompute="full"),
    "recompute selective": Pins(recompute="selective"),
    "virtual_stages": Pins(virtual_stages=2),
}
"""One pin at a time."""


def with_memory(given: Problem, memory_bytes: int) -> Problem:
    """The same problem on devices of that memory."""
    return replace(given, cluster=cluster(given.cluster.size, memory_bytes))
