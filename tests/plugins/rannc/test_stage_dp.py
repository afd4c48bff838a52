"""The stage search against brute force over consecutive blocks and devices."""

from itertools import combinations
from random import Random
from typing import cast

import numpy as np
import pytest

from pipebench_rannc.stage_dp import INFEASIBLE, Prune, RunTimes, StageCut, all_labels, one_label


def random_times(
    chance: Random, blocks: int, devices: int, classes: int = 1, proportional: bool = False
) -> RunTimes:
    """Times that grow with the run and shrink with the replicas; long runs on few replicas do not fit."""
    shape = (classes, devices + 1, blocks + 1, blocks + 1)
    forward = np.full(shape, INFEASIBLE)
    backward = np.full(shape, INFEASIBLE)
    own = [(chance.randint(1, 30), chance.randint(1, 60)) for _ in range(blocks)]
    room = chance.choice([30, 60, 10**6])
    for replicas in range(1, devices + 1):
        for first in range(blocks):
            for end in range(first + 1, blocks + 1):
                ahead, back = (sum(each[way] for each in own[first:end]) for way in (0, 1))
                for place in range(classes):
                    if ahead * (place + 1) <= room * replicas:
                        forward[place, replicas, first, end] = -(-ahead // replicas)
                        backward[place, replicas, first, end] = (
                            2 * -(-ahead // replicas) if proportional else -(-back // replicas)
                        )
    return RunTimes(forward, backward, np.zeros((2, *shape[1:]), np.int64))


def value(times: RunTimes, stages: list[tuple[int, int, int]]) -> int:
    """Longest forward + longest backward of (first, end, replicas); INFEASIBLE when one does not fit."""
    forward, backward = [], []
    for place, (first, end, replicas) in enumerate(stages):
        of_class = min(place + 1, times.forward.shape[0]) - 1
        own = int(times.forward[of_class, replicas, first, end])
        if own >= INFEASIBLE:
            return INFEASIBLE
        forward.append(own + int(times.extra[0, replicas, first, end]))
        backward.append(
            int(times.backward[of_class, replicas, first, end]) + int(times.extra[1, replicas, first, end])
        )
    return max(forward) + max(backward)


def brute_force(times: RunTimes, stages: int, devices: int) -> int:
    """Over all ways to cut blocks and devices into `stages` consecutive parts."""
    blocks, least = times.blocks, INFEASIBLE
    for cuts in combinations(range(1, blocks), stages - 1):
        ends = [0, *cuts, blocks]
        for shares in combinations(range(1, devices), stages - 1):
            at = [0, *shares, devices]
            parts = [(ends[i], ends[i + 1], at[i + 1] - at[i]) for i in range(stages)]
            least = min(least, value(times, parts))
    return least


def spelled(cut: StageCut) -> list[tuple[int, int, int]]:
    starts = [0, *(end for end, _ in cut.stages)]
    return [(start, end, replicas) for start, (end, replicas) in zip(starts, cut.stages, strict=False)]


@pytest.mark.parametrize("seed", range(40))
def test_all_labels_is_the_optimum_for_every_number_of_stages(seed: int) -> None:
    chance = Random(seed)
    blocks, devices = chance.randint(1, 6), chance.randint(1, 5)
    times = random_times(chance, blocks, devices, classes=chance.randint(1, 3))
    times.extra[:] = np.array(chance.choices(range(9), k=times.extra.size)).reshape(times.extra.shape)
    solved = all_labels(times, min(blocks, devices), devices)
    for stages in range(1, min(blocks, devices) + 1):
        best = brute_force(times, stages, devices)
        if best >= INFEASIBLE:
            assert stages not in solved.cuts
        else:
            assert solved.cuts[stages].value == best
            assert value(times, spelled(solved.cuts[stages])) == best
            assert sum(replicas for _, replicas in solved.cuts[stages].stages) == devices


def test_out_of_time_the_cuts_that_are_done_are_those_of_a_whole_search() -> None:
    times = random_times(Random(3), 6, 5)
    whole = all_labels(times, 5, 5).cuts
    asked = iter([False] * (6 + 5 + 4))  # once for each number of blocks of one, two and three stages
    cut_short = all_labels(times, 5, 5, lambda: next(asked, True)).cuts
    assert list(whole) == [1, 2, 3, 4, 5]
    assert cut_short == {stages: whole[stages] for stages in (1, 2, 3)}
    assert not one_label(times, 3, 5, out_of_time=lambda: True).cuts


@pytest.mark.parametrize("seed", range(40))
def test_one_label_is_the_optimum_where_backwards_follow_forwards(seed: int) -> None:
    chance = Random(seed)
    blocks, devices = chance.randint(1, 6), chance.randint(1, 5)
    times = random_times(chance, blocks, devices, proportional=True)
    for stages in range(1, min(blocks, devices) + 1):
        best = brute_force(times, stages, devices)
        solved = one_label(times, stages, devices)
        assert (solved.cuts[stages].value if solved.cuts else INFEASIBLE) == best


@pytest.mark.parametrize("prune", ["none", "stages", "printed"])
@pytest.mark.parametrize("seed", range(20))
def test_algorithm_1_never_claims_less_than_the_optimum(seed: int, prune: str) -> None:
    chance = Random(seed)
    blocks, devices = chance.randint(2, 6), chance.randint(2, 5)
    times = random_times(chance, blocks, devices)
    for stages in range(1, min(blocks, devices) + 1):
        solved = one_label(times, stages, devices, cast(Prune, prune))
        if solved.cuts:
            cut = solved.cuts[stages]
            assert cut.value == value(times, spelled(cut)) >= brute_force(times, stages, devices)


def test_one_label_forgets_the_better_beginning() -> None:
    """Three blocks as two stages of at most 5 + 5 or 2 + 9; the last takes 2 + 9: 14 behind the first, 11 else."""
    times = random_times(Random(0), 4, 4)
    times.forward[:] = times.backward[:] = INFEASIBLE
    for first, end, replicas, ahead, back in (
        (0, 1, 1, 5, 5),
        (1, 3, 2, 1, 1),
        (0, 2, 1, 2, 9),
        (2, 3, 2, 1, 1),
        (3, 4, 1, 2, 9),
    ):
        times.forward[0, replicas, first, end], times.backward[0, replicas, first, end] = ahead, back
    assert brute_force(times, 3, 4) == 11
    assert all_labels(times, 3, 4).cuts[3].value == 11
    assert one_label(times, 3, 4).cuts[3].value == 14


def test_printed_pruning_loses_plans() -> None:
    """Six equal blocks, two to a device: runs of three blocks fit nowhere. Printed, that takes fewer devices away
    from all later stages; for one number of stages at a time, or not at all, the plan of three stages is found.
    """
    times = random_times(Random(0), 6, 6)
    times.forward[:] = times.backward[:] = INFEASIBLE
    for first in range(6):
        for end in range(first + 1, min(6, first + 2) + 1):
            for replicas in range(1, 5):
                times.forward[0, replicas, first, end] = times.backward[0, replicas, first, end] = (
                    60 * (end - first) // replicas
                )
    found = {prune: one_label(times, 3, 6, cast(Prune, prune)) for prune in ("none", "stages", "printed")}
    assert found["none"].cuts[3].value == brute_force(times, 3, 6)
    assert found["printed"].transitions < found["stages"].transitions <= found["none"].transitions
    printed = found["printed"].cuts
    assert not printed or printed[3].value > found["none"].cuts[3].value
