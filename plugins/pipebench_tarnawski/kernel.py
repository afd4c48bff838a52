"""Can the graph be cut into loads of at most a target? The fewest accelerators behind each downset.

Source: Tarnawski et al., Efficient Algorithms for Device Placement of DNN Graph Operators (NeurIPS 2020),
section 5 (dynamic program over pairs of downsets).
"""

from typing import NamedTuple

from pipebench.algorithms.downset_table import Words, boundary, contains
from pipebench.algorithms.jit import assign, kernel
from pipebench.costs.quantise import FloatArray, IntArray

UNREACHED = 1 << 30
SLACK = 1e-9


class LoadTables(NamedTuple):
    """Sets: downsets by `load`. rows, cut, edges, values, cut_sums: of algorithms.downset_table, in seconds.

    load, cpu_load, size: sums on an accelerator, on a CPU, bytes. least: of the smaller of the two loads.
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
    size: FloatArray
    foreign: FloatArray
    by_cpu: IntArray


@kernel
def load_between(tables: LoadTables, large: int, small: int) -> float:
    """Seconds of an accelerator that holds what lies between two downsets: latencies and transfers."""
    sent = boundary(tables.rows, tables.cut, tables.edges, tables.values, tables.cut_sums, large, small)
    return float(tables.load[large] - tables.load[small] + sent)


@kernel
def reach(
    tables: LoadTables, target: float, limit: float, used: IntArray, link: IntArray, counters: IntArray
) -> bool:
    """Fill used (CPUs + 1, sets): the fewest accelerators behind each downset.

    used[0, -1] holds the accelerators that there are when it is called. link: (CPUs + 1, sets, 2), the downset
    behind and 1 for an accelerator, 0 for a CPU, 2 for a CPU left idle. counters: pairs,
    transitions. Returns whether the whole graph is reached.
    """
    cpus, sets = used.shape[0] - 1, used.shape[1]
    most = used[0, sets - 1]
    used[:] = UNREACHED
    for here in range(cpus + 1):
        if here == 0:
            used[0, 0] = 0
        else:
            _on_cpu(tables, target, used[here - 1], used[here], link[here], counters)
        _on_accelerators(tables, target, limit, most, cpus - here, used[here], link[here], counters)
    return bool(used[cpus, sets - 1] <= most)


@kernel
def _on_cpu(
    tables: LoadTables,
    target: float,
    before: IntArray,
    used: IntArray,
    link: IntArray,
    counters: IntArray,
) -> None:
    """One more CPU, with nothing or with what lies between two downsets."""
    sets = used.shape[0]
    assign(used, before)
    for place in range(sets):
        link[place, 0], link[place, 1] = place, 2
    for place in range(sets):
        small = tables.by_cpu[place]
        if before[small] >= UNREACHED:
            continue
        highest = tables.cpu_load[small] + target * (1 + SLACK)
        for at in range(place + 1, sets):
            large = tables.by_cpu[at]
            if tables.cpu_load[large] > highest:
                break
            if used[large] <= before[small] or not contains(tables.rows, large, small):
                continue
            counters[0] += 1
            if tables.cpu_load[large] - tables.cpu_load[small] <= target * (1 + SLACK):
                used[large] = before[small]
                link[large, 0], link[large, 1] = small, 0
                counters[1] += 1


@kernel
def _on_accelerators(
    tables: LoadTables,
    target: float,
    limit: float,
    most: int,
    cpus: int,
    used: IntArray,
    link: IntArray,
    counters: IntArray,
) -> None:
    """Accelerators from every downset reached on. cpus: those still to come."""
    sets = used.shape[0]
    whole = tables.least[sets - 1]
    for small in range(sets - 1):
        count = used[small] + 1
        if count > most:
            continue
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
            if tables.size[large] - tables.size[small] > limit:
                continue
            if load_between(tables, large, small) <= target * (1 + SLACK):
                used[large] = count
                link[large, 0], link[large, 1] = small, 1
                counters[1] += 1
