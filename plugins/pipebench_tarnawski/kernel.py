"""Can the graph be cut into loads of at most a target? The fewest accelerators behind each downset.

Source: Tarnawski et al., Efficient Algorithms for Device Placement of DNN Graph Operators (NeurIPS 2020),
section 5 (dynamic program over pairs of downsets). Downsets are closed under successors, so that what lies
behind a load tells how many micro-batches it holds under 1F1B; fewer loads behind never hurt.
"""

from typing import NamedTuple

import numpy as np

from pipebench.algorithms.downset_table import Words, boundary, contains
from pipebench.algorithms.jit import kernel
from pipebench.costs.quantise import FloatArray, IntArray

UNREACHED = 1 << 30
SLACK = 1e-9
ON_CPU, ON_ACCELERATOR = 0, 1


class LoadTables(NamedTuple):
    """Sets: downsets by `load`. rows, cut, edges, values, cut_sums: of algorithms.downset_table, in seconds.

    load, cpu_load: sums on an accelerator, on a CPU. least: of the smaller of the two loads.
    foreign: operators that no accelerator runs. by_cpu: sets by cpu_load.
    """

    rows: Words
    cut: Words
    edges: Words
    values: FloatArray
    cut_sums: FloatArray
    load: FloatArray
    cpu_load: FloatArray
    least: FloatArray
    foreign: FloatArray
    by_cpu: IntArray


class MemoryTables(NamedTuple):
    """What a load holds, in bytes; the first axis of two is CPU, accelerator.

    held: (sets,) sums of what is held whatever is in flight. live: (2, sets) sums for each live micro-batch.
    every_once, every_live: (2,) of every load besides, once and for each live micro-batch.
    most_live: micro-batches that a load holds at most.
    cut, edges, values, cut_sums: of algorithms.downset_table, buffers of tensors that cross. relay: a load has
    buffers for what passes through it too.
    shared, shared_bytes: node sets of parameters with several users, and their bytes.
    scratch: (2, nodes) workspace of each node.
    plain: whether there are neither buffers nor shared parameters nor scratch.
    """

    held: FloatArray
    live: FloatArray
    every_once: FloatArray
    every_live: FloatArray
    most_live: int
    cut: Words
    edges: Words
    values: FloatArray
    cut_sums: FloatArray
    relay: bool
    shared: Words
    shared_bytes: FloatArray
    scratch: FloatArray
    plain: bool


@kernel
def load_between(tables: LoadTables, large: int, small: int) -> float:
    """Seconds of an accelerator that holds what lies between two downsets: latencies and transfers."""
    sent = boundary(tables.rows, tables.cut, tables.edges, tables.values, tables.cut_sums, large, small)
    return float(tables.load[large] - tables.load[small] + sent)


@kernel
def bytes_of_nodes(memory: MemoryTables, kind: int, large: int, small: int, behind: int) -> float:
    """Bytes of a load with so many loads behind it, without buffers, shared parameters and scratch."""
    live = min(behind + 1, memory.most_live)
    total = memory.held[large] - memory.held[small] + memory.every_once[kind]
    return float(total + live * (memory.live[kind, large] - memory.live[kind, small] + memory.every_live[kind]))


@kernel
def bytes_besides(rows: Words, memory: MemoryTables, kind: int, large: int, small: int) -> float:
    """Bytes of buffers, shared parameters and scratch of what lies between two downsets."""
    if memory.plain:
        return 0.0
    if memory.relay:
        total = memory.cut_sums[large] + memory.cut_sums[small]
    else:
        total = boundary(rows, memory.cut, memory.edges, memory.values, memory.cut_sums, large, small)
    for shared in range(memory.shared.shape[0]):
        for word in range(rows.shape[1]):
            if memory.shared[shared, word] & rows[large, word] & ~rows[small, word]:
                total += memory.shared_bytes[shared]
                break
    most = 0.0
    for node in range(memory.scratch.shape[1]):
        bit = np.uint64(1) << np.uint64(node % 64)
        if memory.scratch[kind, node] > most and rows[large, node // 64] & ~rows[small, node // 64] & bit:
            most = memory.scratch[kind, node]
    return float(total + most)


@kernel
def reach(
    tables: LoadTables,
    memory: MemoryTables,
    target: float,
    limits: FloatArray,
    most: int,
    used: IntArray,
    link: IntArray,
    counters: IntArray,
) -> int:
    """Fill used (CPUs + 1, sets): the fewest accelerators behind each downset with exactly so many CPUs.

    limits: (2,) bytes of a CPU, of an accelerator. most: accelerators that there are. link: (CPUs + 1, sets, 2),
    the downset behind and 1 for an accelerator, 0 for a CPU. counters: pairs, transitions. Returns the fewest
    CPUs with which the whole graph is reached, -1 where it is not.
    """
    cpus, sets = used.shape[0] - 1, used.shape[1]
    used[:] = UNREACHED
    for here in range(cpus + 1):
        if here == 0:
            used[0, 0] = 0
        else:
            _on_cpu(tables, memory, target, limits[0], here, used[here - 1], used[here], link[here], counters)
        _on_accelerators(
            tables, memory, target, limits[1], most, cpus - here, here, used[here], link[here], counters
        )
        if used[here, sets - 1] <= most:
            return here
    return -1


@kernel
def _on_cpu(
    tables: LoadTables,
    memory: MemoryTables,
    target: float,
    limit: float,
    here: int,
    before: IntArray,
    used: IntArray,
    link: IntArray,
    counters: IntArray,
) -> None:
    """One more CPU, with what lies between two downsets. here: CPUs with this one."""
    sets = used.shape[0]
    for place in range(sets):
        small = tables.by_cpu[place]
        if before[small] >= UNREACHED:
            continue
        highest = tables.cpu_load[small] + target * (1 + SLACK)
        behind = before[small] + here - 1
        for at in range(place + 1, sets):
            large = tables.by_cpu[at]
            if tables.cpu_load[large] > highest:
                break
            if used[large] <= before[small] or not contains(tables.rows, large, small):
                continue
            counters[0] += 1
            if tables.cpu_load[large] - tables.cpu_load[small] > target * (1 + SLACK):
                continue
            own = bytes_of_nodes(memory, 0, large, small, behind)
            if own > limit or own + bytes_besides(tables.rows, memory, 0, large, small) > limit:
                continue
            used[large] = before[small]
            link[large, 0], link[large, 1] = small, 0
            counters[1] += 1


@kernel
def _on_accelerators(
    tables: LoadTables,
    memory: MemoryTables,
    target: float,
    limit: float,
    most: int,
    cpus: int,
    here: int,
    used: IntArray,
    link: IntArray,
    counters: IntArray,
) -> None:
    """Accelerators from every downset reached on. cpus: those still to come. here: those behind."""
    sets = used.shape[0]
    whole = tables.least[sets - 1]
    for small in range(sets - 1):
        count = used[small] + 1
        if count > most:
            continue
        behind = used[small] + here
        highest = tables.load[small] + target * (1 + SLACK)
        lowest = whole * (1 - SLACK) - target * (1 + SLACK) * (most - count + cpus)
        for large in range(small + 1, sets):
            if tables.load[large] > highest:
                break
            if used[large] <= count or tables.least[large] < lowest:
                continue
            if abs(tables.cut_sums[large] - tables.cut_sums[small]) > highest - tables.load[large]:
                continue
            if not contains(tables.rows, large, small):
                continue
            counters[0] += 1
            if tables.foreign[large] > tables.foreign[small]:
                continue
            own = bytes_of_nodes(memory, 1, large, small, behind)
            if own > limit or load_between(tables, large, small) > target * (1 + SLACK):
                continue
            if own + bytes_besides(tables.rows, memory, 1, large, small) <= limit:
                used[large] = count
                link[large, 0], link[large, 1] = small, 1
                counters[1] += 1
