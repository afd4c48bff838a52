"""A heaviest matching between two numbered sets."""

from collections.abc import Iterable, Mapping, Sequence

Pair = tuple[int, int]


def heaviest_matching(weights: Mapping[Pair, int]) -> dict[int, int]:
    """Left to right, each used at most once, with the largest sum of weights; only pairs named are matched.

    Weights are whole and above zero. Exact: the Hungarian algorithm (H. W. Kuhn, "The Hungarian method for the
    assignment problem", Naval Research Logistics Quarterly 2, 1955; O(n^3) with potentials, after Edmonds and
    Karp 1972) on each connected part, an unmatched left or right costing nothing.
    """
    matched: dict[int, int] = {}
    for part in _connected(weights):
        lefts = sorted({left for left, _ in part})
        rights = sorted({right for _, right in part})
        costs = [[-weights.get((left, right), 0) for right in rights] for left in lefts]
        transposed = len(lefts) > len(rights)
        if transposed:
            costs = [list(column) for column in zip(*costs, strict=True)]
        for row, column in enumerate(_cheapest(costs)):
            left, right = (lefts[column], rights[row]) if transposed else (lefts[row], rights[column])
            if (left, right) in weights:
                matched[left] = right
    return matched


def _connected(pairs: Iterable[Pair]) -> list[list[Pair]]:
    """The pairs, those that share an end together."""
    part_of: dict[tuple[str, int], list[Pair]] = {}
    for pair in pairs:
        ends = ("left", pair[0]), ("right", pair[1])
        parts = list({id(part_of[end]): part_of[end] for end in ends if end in part_of}.values())
        joined = parts[0] if parts else []
        for other in parts[1:]:
            joined += other
        joined.append(pair)
        for left, right in joined if len(parts) > 1 else [pair]:
            part_of["left", left] = part_of["right", right] = joined
    return list({id(part): part for part in part_of.values()}.values())


def _cheapest(costs: Sequence[Sequence[int]]) -> list[int]:
    """For each row a column of its own, at the smallest sum of costs; there are no more rows than columns.

    Rows enter one by one, each by a shortest augmenting path under reduced costs; column 0 is a helper.
    """
    columns = len(costs[0])
    row_price, column_price = [0] * (len(costs) + 1), [0] * (columns + 1)
    row_of = [0] * (columns + 1)
    for row in range(1, len(costs) + 1):
        row_of[0] = row
        slack: list[int | None] = [None] * (columns + 1)
        came_from = [0] * (columns + 1)
        used = [False] * (columns + 1)
        column = 0
        while row_of[column]:
            used[column] = True
            here, nearest, least = row_of[column], 0, None
            for other in range(1, columns + 1):
                if used[other]:
                    continue
                reduced = costs[here - 1][other - 1] - row_price[here] - column_price[other]
                known = slack[other]
                if known is None or reduced < known:
                    slack[other] = known = reduced
                    came_from[other] = column
                if least is None or known < least:
                    nearest, least = other, known
            assert least is not None
            for other in range(columns + 1):
                reached = slack[other]
                if used[other]:
                    row_price[row_of[other]] += least
                    column_price[other] -= least
                elif reached is not None:
                    slack[other] = reached - least
            column = nearest
        while column:
            row_of[column] = row_of[came_from[column]]
            column = came_from[column]
    found = [0] * len(costs)
    for column in range(1, columns + 1):
        if row_of[column]:
            found[row_of[column] - 1] = column - 1
    return found
