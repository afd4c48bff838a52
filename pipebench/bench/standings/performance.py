"""Performance profiles: the share of problems that an entrant solves within a factor of the best known.

E. D. Dolan and J. J. More, "Benchmarking optimization software with performance profiles", Math. Program. 91,
2002 (arXiv cs/0102001), section 2. What profiles say of two entrants may change with a third one in the set
(Gould and Scott, "A note on performance profiles", ACM TOMS 43(2), 2016); duels do not.
"""

from collections.abc import Sequence


def performance_points(ratios: Sequence[float | None]) -> tuple[tuple[float, float], ...]:
    """Points (tau, share with ratio <= tau) at each step; None (not solved) is in no share, but in the whole."""
    solved = sorted(ratio for ratio in ratios if ratio is not None)
    steps = {ratio: (place + 1) / len(ratios) for place, ratio in enumerate(solved)}
    return tuple(steps.items())
