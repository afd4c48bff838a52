"""Interval DP against all cuts of short chains."""

from itertools import combinations, product

import numpy as np
import pytest

from pipebench_alpa.interval_dp import best_cut


def every_cut(
    times: np.ndarray, deepest: np.ndarray, sizes: np.ndarray, devices: int, micro_batches: int
) -> float:
    count = len(times)
    best = np.inf
    for stages in range(1, count + 1):
        for cuts in combinations(range(1, count), stages - 1):
            bounds = [0, *cuts, count]
            for options in product(range(len(sizes)), repeat=stages):
                if sizes[list(options)].sum() != devices:
                    continue
                each = [times[bounds[i], bounds[i + 1], m] for i, m in enumerate(options)]
                fits = all(stages - 1 - i <= deepest[bounds[i], bounds[i + 1], m] for i, m in enumerate(options))
                if fits:
                    best = min(best, sum(each) + (micro_batches - 1) * max(each))
    return best


@pytest.mark.parametrize("seed", range(60))
def test_all_cuts(seed: int) -> None:
    random = np.random.default_rng(seed)
    count, devices, micro_batches = (int(random.integers(*ends)) for ends in ((1, 6), (1, 5), (1, 9)))
    sizes = np.array([1, 2, 4], np.int64)
    times = random.uniform(1, 9, (count, count + 1, 3))
    times[random.random(times.shape) < 0.1] = np.inf
    deepest = random.integers(-1, 4, times.shape)
    cut, _ = best_cut(times, deepest, sizes, devices, micro_batches)
    expected = every_cut(times, deepest, sizes, devices, micro_batches)
    assert (np.inf if cut is None else cut.objective_s) == pytest.approx(expected)
