"""Large graphs for tests of scale: a chain, and branches side by side between one operator and another."""

from itertools import pairwise
from random import Random
from typing import Literal

from pipebench.domain.cluster import Cluster, DeviceType, LinkLevel
from pipebench.domain.graph import Operator, OperatorGraph, Parameter, Tensor
from pipebench.domain.problem import Problem, Regime
from pipebench.domain.profile import DeviceCosts, OperatorCosts, Profile

Shape = Literal["chain", "branches"]
SIZES = (1, 2, 4, 8)
BRANCHES = 4


def large_problem(shape: Shape, operators: int, devices: int, mini_batch: int = 512) -> Problem:
    """Operators of 3 to 300 us a sample on nodes of eight devices of 16 GiB."""
    profile = large_profile(shape, operators)
    cluster = Cluster(
        name="nodes",
        types=(DeviceType(name="gpu", memory_bytes=16 * 2**30),),
        devices=("gpu",) * devices,
        levels=(
            LinkLevel(name="node", group=8, bandwidth_bytes_s=1e11),
            LinkLevel(name="all", group=devices, bandwidth_bytes_s=12e9),
        ),
    )
    return Problem(profile=profile, cluster=cluster, mini_batch=mini_batch, regime=Regime(mode="sync"))


def large_profile(shape: Shape, count: int) -> Profile:
    """The same figures for the same arguments."""
    chance = Random(1)
    reads: list[list[int]] = [[] for _ in range(count)]
    for before, after in _edges(shape, count):
        reads[after].append(before)
    tensors, operators, parameters, costs = [], [], [], []
    for op in range(count):
        forward = chance.randint(1_000, 100_000)
        tensors.append(
            Tensor(
                name=f"t{op}",
                producer=f"op{op}",
                forward_bytes_per_sample=float(chance.randint(10**4, 10**6)),
                gradient_bytes_per_sample=1e5,
            )
        )
        operators.append(
            Operator(
                name=f"op{op}",
                kind="op",
                inputs=tuple(f"t{before}" for before in reads[op]),
                parameters=(f"w{op}",),
            )
        )
        parameters.append(Parameter(name=f"w{op}", bytes=4 * chance.randint(1, 10**5)))
        costs.append(
            OperatorCosts(
                operator=f"op{op}",
                forward_s=tuple(forward * size / 1e9 for size in SIZES),
                backward_s=tuple(2 * forward * size / 1e9 for size in SIZES),
                saved_bytes_per_sample=float(chance.randint(10**3, 10**5)),
            )
        )
    graph = OperatorGraph(
        name=shape, operators=tuple(operators), tensors=tuple(tensors), parameters=tuple(parameters)
    )
    made = DeviceCosts(device_type="gpu", micro_batches=SIZES, operators=tuple(costs))
    return Profile(name=f"{shape}-{count}", graph=graph, costs=(made,))


def _edges(shape: Shape, count: int) -> list[tuple[int, int]]:
    if shape == "chain":
        return [(op, op + 1) for op in range(count - 1)]
    bounds = [1 + (count - 2) * branch // BRANCHES for branch in range(BRANCHES + 1)]
    edges: list[tuple[int, int]] = []
    for first, end in pairwise(bounds):
        edges += [(0, first), (end - 1, count - 1), *((op, op + 1) for op in range(first, end - 1))]
    return edges
