"""The least cost of all choices together, where the cost of one depends on sums over those before it.

Operators are visited along one path through the graph. Two sums matter: devices that hold an operator visited so
far, and bytes saved so far. A device that holds none of them waits while the next operator of the path runs. What
is saved stays until that operator has run forward and backward. The least cost of what follows is concave in the
bytes: it is a minimum of sums that are linear in them. So the line between two points of a grid is never above it.
"""

import numpy as np

from pipebench.algorithms.jit import kernel
from pipebench.costs.quantise import IntArray

FINE = 1 << 16
"""Parts of a step of the grid."""
ENOUGH = 1 << 45
"""No cost counts as more: sums and products of them stay within 64 bits."""


@kernel
def least_cost(
    visits: IntArray,
    rows: IntArray,
    slopes: IntArray,
    devices: int,
    unit: int,
    places: int,
    points: int,
) -> int:
    """A lower bound on the least sum of costs, in whole numbers.

    visits: first row and last row + 1 of each visit, shape (visits, 2).
    rows: of each choice its cost, its devices (in units, rounded up), its cost for each device that waits, and
    what it saves, in steps of the grid and FINE parts of one, shape (rows, 5).
    slopes: what a choice costs at each grid point more than at the first, shape (rows, points + 1).
    devices, unit: of the plan, and how many of them are counted as one; places: units, at which counting stops.
    """
    after = np.zeros((places + 1, points + 1), np.int64)
    here = np.zeros((places + 1, points + 1), np.int64)
    for visit in range(len(visits) - 1, -1, -1):
        for started in range(places + 1):
            for point in range(points + 1):
                least = ENOUGH
                for row in range(visits[visit, 0], visits[visit, 1]):
                    held = min(started + rows[row, 1], places)
                    waiting = max(devices - held * unit, 0)
                    cost = rows[row, 0] + slopes[row, point] + rows[row, 2] * waiting
                    if cost < least:
                        at = point + rows[row, 3]
                        if at >= points:
                            cost += after[held, points]
                        else:
                            left = after[held, at]
                            cost += left + ((after[held, at + 1] - left) * rows[row, 4]) // FINE
                        least = min(least, cost)
                here[started, point] = least
        after, here = here, after
    return int(after[0, 0])
