"""Elimination in plain Python: a dictionary for each table, one combination of configurations after the other."""

from collections.abc import Sequence
from itertools import product

from pipebench_pase.elimination import Costs

Table = tuple[tuple[int, ...], dict[tuple[int, ...], float]]


def least_cost(costs: Costs, order: Sequence[int]) -> float:
    """The least cost of all strategies: vertices are eliminated in that order (PaSE, figure 4)."""
    sizes = [len(own) for own in costs.vertices]
    tables: list[Table] = [
        ((vertex,), {(number,): float(cost) for number, cost in enumerate(own)})
        for vertex, own in enumerate(costs.vertices)
    ]
    for (u, v), both in costs.pairs.items():
        rows = both.tolist()
        tables.append(((u, v), {(i, j): cost for i, row in enumerate(rows) for j, cost in enumerate(row)}))
    total = 0.0
    for vertex in order:
        mine = [table for table in tables if vertex in table[0]]
        tables = [table for table in tables if vertex not in table[0]]
        left = tuple(sorted({other for scope, _ in mine for other in scope} - {vertex}))
        found: dict[tuple[int, ...], float] = {}
        for chosen in product(*(range(sizes[other]) for other in left)):
            of = dict(zip(left, chosen, strict=True))
            found[chosen] = min(
                sum(values[tuple((of | {vertex: number})[other] for other in scope)] for scope, values in mine)
                for number in range(sizes[vertex])
            )
        if left:
            tables.append((left, found))
        else:
            total += found[()]
    return total
