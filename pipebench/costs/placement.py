"""Placement: consecutive device ids for stages in topological order."""

from collections.abc import Sequence

from pipebench.domain.errors import InfeasibleProblem


def place(counts: Sequence[int], devices: int) -> tuple[tuple[int, ...], ...]:
    """Consecutive ids 0, 1, … for stages that need `counts` devices each, in the order given.

    Raises InfeasibleProblem when they need more than there are.
    """
    if sum(counts) > devices:
        raise InfeasibleProblem(f"the stages need {sum(counts)} devices, there are {devices}")
    placed: list[tuple[int, ...]] = []
    first = 0
    for count in counts:
        placed.append(tuple(range(first, first + count)))
        first += count
    return tuple(placed)
