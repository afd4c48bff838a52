"""The chain DP against every cut of small chains."""

from itertools import combinations, pairwise, product

import numpy as np
import pytest

from pipebench_graphpipe.chain_dp import NO_LIMIT, UNREACHED, chain_depths, chain_stages

REPLICAS = np.array([1, 2], np.int32)


def random_limits(seed: int, operators: int) -> np.ndarray:  # type: ignore[type-arg]
    random = np.random.default_rng(seed)
    limits = random.integers(-9, 4, (operators, operators + 1, 2))
    limits[random.random(limits.shape) < 0.1] = NO_LIMIT
    return limits.astype(np.int32)


def fewest_stages(limits: np.ndarray, devices: int, behind: int) -> int:  # type: ignore[type-arg]
    operators = len(limits)
    best = UNREACHED
    for count in range(1, operators + 1):
        for cuts in combinations(range(1, operators), count - 1):
            stages = list(pairwise((0, *cuts, operators)))
            for choices in product((0, 1), repeat=count):
                fits = all(
                    count - at + behind <= limits[first, end, choice]
                    for at, ((first, end), choice) in enumerate(zip(stages, choices, strict=True))
                )
                if fits and sum(int(REPLICAS[choice]) for choice in choices) <= devices:
                    best = min(best, count + behind)
    return best


@pytest.mark.parametrize("behind", [0, 2])
@pytest.mark.parametrize("seed", range(40))
def test_fewest_stages_of_all_cuts(seed: int, behind: int) -> None:
    limits = random_limits(seed, 6)
    depths = chain_depths(limits, REPLICAS, 5, behind)
    for devices in range(6):
        assert depths[0, devices] == fewest_stages(limits, devices, behind)


@pytest.mark.parametrize("seed", range(40))
def test_the_stages_found_are_within_their_limits(seed: int) -> None:
    limits = random_limits(seed, 8)
    depths = chain_depths(limits, REPLICAS, 5)
    stages = chain_stages(depths, limits, REPLICAS)
    if stages is None:
        assert depths[0, 5] == UNREACHED
        return
    assert [first for first, _, _ in stages] == [0, *(end for _, end, _ in stages[:-1])]
    assert stages[-1][1] == 8
    assert sum(used for _, _, used in stages) <= 5
    for at, (first, end, used) in enumerate(stages):
        assert len(stages) - at <= limits[first, end, REPLICAS.tolist().index(used)]


def test_both_outcomes_occur() -> None:
    found = [chain_depths(random_limits(seed, 8), REPLICAS, 5)[0, 5] < UNREACHED for seed in range(40)]
    assert any(found)
    assert not all(found)
