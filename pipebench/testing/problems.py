"""The problems that every planner of the kit meets: small enough to know what is right."""

from msgspec.structs import replace

from pipebench.domain.problem import Pins, Problem, RegimeMode
from pipebench.testing.building import chain_edges, cluster, problem

CHAIN_US = (300, 500, 200, 700, 400, 600)
LINE_US = (*CHAIN_US, 350, 450)
DAG_US = (200, 600, 300, 500, 400, 250)
DAG_EDGES = ((0, 1, 200_000), (0, 3, 200_000), (1, 2, 100_000), (3, 4, 150_000), (2, 5, 50_000), (4, 5, 80_000))
STARVED_BYTES = 1_000


def chain(mode: RegimeMode, pins: Pins | None = None) -> Problem:
    """Six operators in a line, four devices."""
    return problem("chain", mode, 4, CHAIN_US, chain_edges(6), pins=pins)


def dag(mode: RegimeMode) -> Problem:
    """Two branches between a common source and a common sink, four devices."""
    return problem("dag", mode, 4, DAG_US, DAG_EDGES)


CASES = ("tiny", "chain", "dag", "one-device", "spare-devices")


def case(name: str, mode: RegimeMode) -> Problem:
    """One of CASES: each has a valid plan, one device that runs everything among others."""
    if name == "tiny":
        return problem("tiny", mode, 2, (500,), (), mini_batch=4)
    if name == "one-device":
        return problem("one-device", mode, 1, CHAIN_US, chain_edges(6))
    if name == "spare-devices":
        return problem("spare-devices", mode, 8, (500, 400), chain_edges(2))
    return dag(mode) if name == "dag" else chain(mode)


def starved(mode: RegimeMode) -> Problem:
    """The chain on devices that hold no operator's weights: nothing fits, provably."""
    return with_memory(chain(mode), STARVED_BYTES)


def large(mode: RegimeMode) -> Problem:
    """Sixty operators in three branches on eight devices: a search has something to do."""
    us = [100 + 37 * op % 411 for op in range(62)]
    edges = [(0, 1, 90_000), (0, 21, 80_000), (0, 41, 70_000)]
    edges += [(op, op + 1, 40_000 + 10_000 * (op % 7)) for op in range(1, 61) if op % 20]
    edges += [(20, 61, 60_000), (40, 61, 60_000), (60, 61, 60_000)]
    return problem("large", mode, 8, us, edges, mini_batch=64, sizes=(1, 2, 4, 8))


PINNED: dict[str, Pins] = {
    "micro_batch": Pins(micro_batch=2),
    "pipeline": Pins(pipeline=2),
    "data_parallel": Pins(data_parallel=2),
    "tensor_parallel": Pins(tensor_parallel=2),
    "recompute": Pins(recompute="stage"),
    "virtual_stages": Pins(virtual_stages=2),
}
"""One pin at a time, on the chain."""


def with_memory(given: Problem, memory_bytes: int) -> Problem:
    """The same problem on devices of that memory."""
    return replace(given, cluster=cluster(given.cluster.size, memory_bytes))
