"""Small problems from a few figures, in integer nanoseconds and bytes."""

from collections.abc import Sequence

from pipebench.domain.cluster import Cluster, DeviceType, LinkLevel
from pipebench.domain.graph import Operator, OperatorGraph, Parameter, Tensor
from pipebench.domain.problem import Pins, Problem, Regime, RegimeMode
from pipebench.domain.profile import DeviceCosts, OperatorCosts, Profile

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
