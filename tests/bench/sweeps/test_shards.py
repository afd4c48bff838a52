"""Shards: each trial in exactly one, problems whole, shards alike; and what Slurm says of its arrays."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipebench.bench.sweeps.shards import Shard, array_folder, parse_shard, shard_of_array, shards_of
from pipebench.bench.trials.trial import Trial
from pipebench.domain.errors import PipebenchError
from pipebench.domain.problem import RegimeMode
from tests.bench.ready import planner, workload
from tests.builders import chain_problem, cluster

PLANNERS = [planner(lambda problem, context: None, name) for name in ("one", "two")]
REGIMES: tuple[RegimeMode, ...] = ("sync", "async")


def trials(operators: list[int]) -> list[Trial]:
    """Two planners in both regimes on a chain of each of these lengths; equal lengths differ in a time."""
    found = []
    for number, length in enumerate(operators):
        posed = workload(chain_problem([1000 + number] * length, [2000] * length, cluster(2)))
        found += [Trial(workload=posed, regime=mode, planner=each) for each in PLANNERS for mode in REGIMES]
    return found


@given(st.lists(st.integers(1, 6), max_size=12), st.integers(1, 9))
def test_problems_are_whole_and_shards_alike(operators: list[int], count: int) -> None:
    listed = trials(operators)
    numbers = shards_of(listed, count)
    assert numbers == shards_of(trials(operators), count)  # it follows from the content
    assert len(numbers) == len(listed)  # each trial has one shard, so that their union is the sweep exactly once
    assert all(1 <= number <= count for number in numbers)
    of_problem: dict[str, set[int]] = {}
    for trial, number in zip(listed, numbers, strict=True):
        of_problem.setdefault(trial.workload.base.workload_id, set()).add(number)
    assert all(len(shards) == 1 for shards in of_problem.values())
    problems = [sum(number in shards for shards in of_problem.values()) for number in range(1, count + 1)]
    assert max(problems) - min(problems) <= 1


def test_the_largest_problems_are_in_different_shards() -> None:
    numbers = shards_of(trials([1, 9, 2, 9, 1, 9, 2, 9]), 4)[:: len(PLANNERS) * len(REGIMES)]
    assert sorted(numbers[1::2]) == [1, 2, 3, 4]
    assert sorted(numbers[0::2]) == [1, 2, 3, 4]


def test_large_problems_are_dealt_first() -> None:
    """From small to large the last, largest one would come on top of another."""
    numbers = shards_of(trials([1, 1, 9]), 2)[:: len(PLANNERS) * len(REGIMES)]
    assert numbers[0] == numbers[1] != numbers[2]


def test_the_deal_turns_round() -> None:
    """Whoever got the largest of a round gets the smallest of the next one."""
    assert shards_of(trials([4, 3, 2, 1]), 2)[:: len(PLANNERS) * len(REGIMES)] in ([1, 2, 2, 1], [2, 1, 1, 2])


def test_an_axis_of_a_grid_does_not_fall_on_one_shard() -> None:
    """Equal sizes with an axis of four values, the last one fastest: dealt in turn, each shard would get one."""
    numbers = shards_of(trials([5] * 64), 4)[:: len(PLANNERS) * len(REGIMES)]
    axis: dict[int, set[int]] = {}
    for place, number in enumerate(numbers):
        axis.setdefault(number, set()).add(place % 4)
    assert all(len(values) >= 3 for values in axis.values())


def test_the_same_problem_twice_is_in_one_shard() -> None:
    listed = [*trials([3, 4]), *trials([3, 4])]
    numbers = shards_of(listed, 2)
    assert numbers[:8] == numbers[8:]


def test_shards_are_read_from_text() -> None:
    assert parse_shard("3/8") == Shard(3, 8)
    assert str(Shard(3, 8)) == "shard 3 of 8"
    for text in ("", "3", "3/", "3/8/1", "-1/8", "a/b", "3 / 8", "٣/8", "1_0/20"):
        with pytest.raises(PipebenchError, match="no shard"):
            parse_shard(text)
    for text in ("0/8", "9/8", "1/0", "1/999999"):
        with pytest.raises(PipebenchError, match="shard"):
            parse_shard(text)


def slurm(**said: object) -> dict[str, str]:
    return {f"SLURM_ARRAY_TASK_{name}": str(value) for name, value in said.items()}


def test_a_task_of_an_array_is_a_shard() -> None:
    for first in (0, 1, 7):  # --array=0-7, 1-8, 7-14
        tasks = [slurm(ID=first + task, COUNT=8, MIN=first, MAX=first + 7, STEP=1) for task in range(8)]
        assert [shard_of_array(each) for each in tasks] == [Shard(number, 8) for number in range(1, 9)]
    assert shard_of_array(slurm(ID=5, COUNT=1, MIN=5)) == Shard(1, 1)
    assert shard_of_array(slurm(ID=5, COUNT=1, MIN=5, MAX=5, STEP=4)) == Shard(1, 1)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (slurm(), "ID and SLURM_ARRAY_TASK_COUNT and SLURM_ARRAY_TASK_MIN not set"),
        (slurm(ID=1, COUNT=8), "SLURM_ARRAY_TASK_MIN not set"),
        (slurm(ID=" ", COUNT=8, MIN=1), "SLURM_ARRAY_TASK_ID not set"),
        (slurm(ID="one", COUNT=8, MIN=1), "SLURM_ARRAY_TASK_ID is 'one', not a number"),
        (slurm(ID=1, COUNT="-8", MIN=1), "SLURM_ARRAY_TASK_COUNT is '-8', not a number"),
        (slurm(ID=3, COUNT=4, MIN=1, MAX=7, STEP=2), "steps of 2"),
        (slurm(ID=3, COUNT=3, MIN=1, MAX=7, STEP=1), "3 tasks from 1 to 7 .* has gaps"),
        (slurm(ID=9, COUNT=8, MIN=1), "task 9 .* is not one of 1 to 8"),
        (slurm(ID=0, COUNT=8, MIN=1), "task 0 .* is not one of 1 to 8"),
        (slurm(ID=0, COUNT=0, MIN=0), "task 0 .* is not one of"),
    ],
)
def test_what_is_missing_or_odd_is_named(said: dict[str, str], words: str) -> None:
    with pytest.raises(PipebenchError, match=words):
        shard_of_array(said)


def test_each_task_has_a_folder_of_its_own(tmp_path: Path) -> None:
    names = [array_folder(tmp_path, Shard(number, 12)).name for number in (1, 12)]
    assert names == ["shard-01-of-12", "shard-12-of-12"]
    os.mkdir(tmp_path / names[0])
    assert array_folder(tmp_path, Shard(2, 12)).name == "shard-02-of-12"
    with pytest.raises(PipebenchError, match="holds shards of 12, this array has 3 tasks"):
        array_folder(tmp_path, Shard(1, 3))
