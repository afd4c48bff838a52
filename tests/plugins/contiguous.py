"""What both contiguous planners are asked: problems, and the pipedream ResNet-50 profile at MadPipe's scale."""

import re
from pathlib import Path

import msgspec

from pipebench.algorithms.graph_orders import Layers, linearise
from pipebench.domain.cluster import Cluster
from pipebench.domain.problem import Pins, Problem
from tests.builders import chain_problem, cluster, dag_problem

BATCH, SIDE = 128, 224
SCALE = 8e6 / (BATCH * SIDE**2)
"""From the profiled batch and image side to 8 images of 1000 x 1000: times and activations grow with pixels."""


def pinned(problem: Problem, **pins: object) -> Problem:
    return msgspec.structs.replace(problem, pins=Pins(**pins))  # type: ignore[arg-type]


def several_sizes(devices: int, memory: int = 10**9) -> Problem:
    """Five operators, micro-batches of 1, 2 and 4 of 8 samples; 4 is the fastest for a sample and the largest."""
    problem = chain_problem(
        [4, 5, 6, 5, 4], [8, 9, 9, 9, 8], cluster(devices, memory), activations=[6, 4, 5, 6, 4, 0], weights=[3] * 5
    )
    device = problem.profile.costs[0]
    sizes = (1, 2, 4)
    operators = tuple(
        msgspec.structs.replace(
            c,
            forward_s=tuple(c.forward_s[0] * (2 + size) for size in sizes),
            backward_s=tuple(c.backward_s[0] * (2 + size) for size in sizes),
        )
        for c in device.operators
    )
    costs = (msgspec.structs.replace(device, micro_batches=sizes, operators=operators),)
    return msgspec.structs.replace(
        problem, profile=msgspec.structs.replace(problem.profile, costs=costs), mini_batch=8
    )


def resnet50(path: Path, devices: int, memory: int) -> Problem:
    """The layers of the profile as MadPipe's chain: a layer stores its input; 12 GB/s."""
    return measured_chain(path, SCALE, cluster(devices, memory, 12e9))


def measured_chain(path: Path, scale: float, on: Cluster) -> Problem:
    """The layers of a profile of PipeDream's as a chain; times and activations grow by `scale`."""
    nodes, layers, sent = read_graph(path)
    forward, backward = (
        [sum(round(nodes[op][column] * scale * 1e6) for op in ops) for ops in layers.operators]
        for column in (0, 1)
    )
    return chain_problem(
        forward,
        backward,
        on,
        activations=[round(each * scale) for each in sent],
        weights=[round(sum(nodes[op][3] for op in ops)) for ops in layers.operators],
    )


def read_graph(path: Path) -> tuple[list[tuple[float, ...]], Layers, list[float]]:
    """(forward ms, backward ms, activation bytes, parameter bytes) of each node, the layers, and the bytes before
    the first and behind each.

    Behind a layer is what a later one reads. It need not come from the last operator: Inception's auxiliary head
    ends in a layer whose trunk lives on. Behind the last layer is what its last operator makes.
    """
    nodes: dict[str, tuple[float, ...]] = {}
    edges: list[tuple[str, str]] = []
    source = ""
    for line in path.read_text().splitlines():
        if line.startswith("\t"):
            before, after = line.strip().split(" -- ")
            edges.append((before, after))
            continue
        name, kind, columns = line.split(" -- ")
        fields = dict(re.findall(r"(\w+)=(\[.*?\]|[\d.]+)", columns))
        numbers = {key: sum(float(n) for n in re.findall(r"[\d.]+", value)) for key, value in fields.items()}
        nodes[name] = (
            numbers["forward_compute_time"],
            numbers["backward_compute_time"],
            numbers["activation_size"],
            numbers["parameter_size"],
        )
        if kind.startswith("Input"):
            source = name
    listed = sorted(nodes.keys() - {source}, key=lambda name: int(name.removeprefix("node")))
    place = {name: position for position, name in enumerate(listed)}
    readers = [tuple(sorted(place[b] for a, b in edges if a == name)) for name in listed]
    zeros = [0] * len(listed)
    graph = dag_problem(zeros, zeros, [(i, r, 1) for i, r in enumerate(readers) if r], cluster(1)).profile.graph
    layers = linearise(graph)
    layer_of = {op: number for number, ops in enumerate(layers.operators) for op in ops}
    sent = [nodes[source][2]]
    for number in range(len(layers.operators) - 1):
        before = [op for op in layer_of if layer_of[op] <= number]
        sent.append(sum(nodes[listed[op]][2] for op in before if any(layer_of[r] > number for r in readers[op])))
    sent.append(nodes[listed[layers.operators[-1][-1]]][2])
    return [nodes[name] for name in listed], layers, sent
