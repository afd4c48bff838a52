"""The cluster of a measured run: a device of the table, links from the row or of the usual node."""

import re

from msgspec.structs import replace

from pipebench.bench.accuracy.assumptions import Choices, NotExpressed
from pipebench.bench.accuracy.run import Run
from pipebench.defaults import LATEST_NODES
from pipebench.domain.cluster import Cluster, DeviceType, LinkLevel
from pipebench.domain.errors import nearest
from pipebench.domain.limits import MOST_DEVICES
from pipebench.formats.clusters import cluster_table, load_cluster
from pipebench.formats.devices import device_names, device_table, load_device, process_memory_bytes

USUAL_NODE = 8
_MEMORY = re.compile(r"(\d+)GB")
NODE = re.compile(r"(?:\d{1,6}|n)x(\d{1,6})\b")
"""How `nodes_gpus` begins: nodes (n: as many as it takes), x, GPUs of one."""
_CARDS = re.compile(r"\b(\d{1,6})x(\d{1,6}) Gb/s")
_NODE_RATE = re.compile(r"(?<!x)\b(\d{1,6}) Gb/s a node")
_DEVICE_RATE = re.compile(r"\b(\d{1,6}) Gb/s a GPU")
GBIT = 1e9 / 8


def cluster_of(run: Run, choices: Choices) -> Cluster:
    """The devices and links of a run. Raises NotExpressed for a device without figures."""
    device = device_of(run, choices)
    if run.gpus > MOST_DEVICES:
        raise NotExpressed(f"more than {MOST_DEVICES} GPUs", f"gpus is {run.gpus}")
    base = _base_cluster(device)
    usual = max(
        (level.group for level in cluster_table().clusters[base].levels if level.group), default=USUAL_NODE
    )
    whole = load_cluster(base, max(run.gpus, usual + 1))
    *inner, network = whole.levels
    own = cluster_table().clusters[base].device or ""
    if _family(own) != _family(device.name):
        peers = device_table().devices[device.name].nvlink_gb_s
        inner = [replace(level, bandwidth_bytes_s=peers * 1e9) for level in inner] if peers else inner
    node = _node_gpus(run, usual, choices)
    if node != inner[-1].group:
        inner = [replace(inner[-1], group=node)]
    levels = [level for level in inner if level.group < run.gpus]
    if run.gpus > node:
        share = (network.shared_bandwidth_bytes_s or 0) * node / usual
        outer = replace(network, group=run.gpus, shared_bandwidth_bytes_s=share or None)
        levels.append(_network(run, outer, node, base, choices))
    else:
        levels.append(replace(inner[len(levels)], group=run.gpus))
    return Cluster(
        name=f"{run.gpus} x {device.name}",
        types=(device,),
        devices=(device.name,) * run.gpus,
        levels=tuple(levels),
        link_mode=whole.link_mode,
    )


def device_of(run: Run, choices: Choices) -> DeviceType:
    """The device type by family and memory. Raises NotExpressed where the table has none of the family."""
    said = run.device.removeprefix("DGX-")
    if said in device_names():
        return load_device(said)
    family = _of_build(said, [name for name in device_names() if _family(name) == _family(said)])
    if not family:
        raise NotExpressed(f"no figures for the device {_family(said)}", nearest(said, device_names()))
    memory = _MEMORY.search(said)
    alike = [name for name in family if memory and f"-{memory[1]}GB" in name]
    if len(alike) == 1 or (len(family) == 1 and memory is None):
        return load_device((alike or family)[0])
    listed = sorted(alike or family, key=lambda name: -load_device(name).memory_bytes)
    return load_device(choices.take("device", listed[0], listed[1:]))


def memory_bytes(run: Run, device: DeviceType) -> int:
    """What a process sees of a device of the run: of that of the table, unless the row says another memory."""
    memory = _MEMORY.search(run.device)
    return process_memory_bytes(replace(device, memory_bytes=int(memory[1]) * 10**9) if memory else device)


def _node_gpus(run: Run, usual: int, choices: Choices) -> int:
    """GPUs of a node, or of a rack whose devices are joined like those of a node. usual: of the device's cluster.

    A job takes equal parts of its racks: of 72 devices often 64.
    """
    found = NODE.match(run.nodes_gpus)
    if found is not None:
        return max(1, int(found[1]))
    if run.gpus <= usual:
        return usual
    if usual <= USUAL_NODE:
        return int(choices.take("GPUs of a node", usual))
    even = next(size for size in range(usual, 0, -1) if run.gpus % size == 0)
    return int(choices.take("GPUs of a rack", even, [usual] if even < usual else []))


def _network(run: Run, usual: LinkLevel, node: int, base: str, choices: Choices) -> LinkLevel:
    """The links between nodes, as the row says or as the usual cluster has them."""
    cards, a_node, a_device = (rule.search(run.nodes_gpus) for rule in (_CARDS, _NODE_RATE, _DEVICE_RATE))
    if cards is not None:
        each, shared = int(cards[2]) * GBIT, int(cards[1]) * int(cards[2]) * GBIT
    elif a_device is not None:
        each, shared = int(a_device[1]) * GBIT, int(a_device[1]) * GBIT * node
    elif a_node is not None:
        shared = int(a_node[1]) * GBIT
        each = min(usual.bandwidth_bytes_s, shared / node)
    else:
        choices.take("network", f"{base}: {usual.bandwidth_bytes_s / 1e9:g} GB/s a device")
        return usual
    if each <= 0:
        raise NotExpressed("no bandwidth between nodes", f"nodes_gpus is {run.nodes_gpus}")
    return replace(usual, bandwidth_bytes_s=each, shared_bandwidth_bytes_s=shared)


def _base_cluster(device: DeviceType) -> str:
    known, family = cluster_table().clusters, _family(device.name)
    for name in sorted(known):
        if name.startswith(("dgx", family.lower())) and _family(known[name].device or "") == family:
            return name
    return LATEST_NODES


def _of_build(said: str, names: list[str]) -> list[str]:
    """Those of the build that is said, else the usual ones."""
    builds = {name: device_table().devices[name].build.upper() for name in names}
    named = [name for name in names if builds[name] and builds[name] in said.upper()]
    return named or [name for name in names if not builds[name]]


def _family(name: str) -> str:
    return re.split(r"[-\s]", name, maxsplit=1)[0].upper()
