"""Shards of a sweep: which of its trials each of several machines runs, and what Slurm says of a job array."""

import os
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipebench.bench.problems.workload import Workload
from pipebench.bench.trials.trial import Trial
from pipebench.domain.errors import PipebenchError
from pipebench.domain.limits import MOST_SHARDS

_FORM = "write K/N, such as 3/8: the third of eight"


@dataclass(frozen=True, slots=True)
class Shard:
    """Shard `number` of `count`, from 1. Raises PipebenchError for one that there is not."""

    number: int
    count: int

    def __post_init__(self) -> None:
        if not 1 <= self.count <= MOST_SHARDS:
            raise PipebenchError(f"a sweep has 1 to {MOST_SHARDS:,} shards, not {self.count:,}", _FORM)
        if not 1 <= self.number <= self.count:
            raise PipebenchError(
                f"there is no shard {self.number} of {self.count}", f"shards are numbered 1 to {self.count}"
            )

    def __str__(self) -> str:
        return f"shard {self.number} of {self.count}"


_SHARD = re.compile(r"([0-9]{1,9})/([0-9]{1,9})")


def parse_shard(text: str) -> Shard:
    """The shard of K/N. Raises PipebenchError for another text, or a K that is not from 1 to N."""
    found = _SHARD.fullmatch(text.strip())
    if found is None:
        raise PipebenchError(f"{text!r} is no shard", _FORM)
    return Shard(int(found[1]), int(found[2]))


ID, COUNT, MIN, MAX, STEP = (f"SLURM_ARRAY_TASK_{name}" for name in ("ID", "COUNT", "MIN", "MAX", "STEP"))
_BY_HAND = "say which shard it is: --shard K/N, N being the tasks of the whole array"


def shard_of_array(environment: Mapping[str, str]) -> Shard:
    """The shard of this task of a Slurm job array: its first task is shard 1, its number of tasks the count.

    The array must count up by one, as `--array=0-7` or `--array=1-8` does. With gaps or steps the count is that of
    the tasks which were submitted this time, and not that of the sweep.
    Raises PipebenchError that names the variable which is missing or odd.
    """
    missing = [name for name in (ID, COUNT, MIN) if not environment.get(name, "").strip()]
    if missing:
        raise PipebenchError(
            f"--array: {' and '.join(missing)} not set: this is no task of a Slurm job array",
            "submit it with sbatch --array=1-8, or give --shard K/N",
        )
    task, count, first = (_number(environment, name) for name in (ID, COUNT, MIN))
    last = _number(environment, MAX) if environment.get(MAX, "").strip() else first + count - 1
    step = _number(environment, STEP) if environment.get(STEP, "").strip() else 1
    if count > 1 and step > 1:
        raise PipebenchError(f"--array: the array counts in steps of {step} ({STEP})", _BY_HAND)
    if last - first + 1 != count:
        raise PipebenchError(
            f"--array: {count} tasks from {first} to {last} ({COUNT}, {MIN}, {MAX}): the array has gaps", _BY_HAND
        )
    if not first <= task <= last:
        raise PipebenchError(
            f"--array: task {task} ({ID}) is not one of {first} to {last} ({MIN}, {COUNT})", _BY_HAND
        )
    return Shard(task - first + 1, count)


def _number(environment: Mapping[str, str], name: str) -> int:
    text = environment[name].strip()
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise PipebenchError(f"--array: {name} is {text[:40]!r}, not a number", _BY_HAND)
    return int(text)


_FOLDER = re.compile(r"shard-[0-9]+-of-([0-9]+)")


def array_folder(folder: Path, shard: Shard) -> Path:
    """The store of a task below the folder of an array: one for each, so that no two share a file.

    Raises PipebenchError where the folder holds shards of another count: one of the two would run in vain.
    """
    names = os.listdir(folder) if folder.is_dir() else []
    counts = {int(found[1]) for name in names if (found := _FOLDER.fullmatch(name))}
    if others := counts - {shard.count}:
        raise PipebenchError(
            f"{str(folder)!r} holds shards of {min(others)}, this array has {shard.count} tasks",
            f"submit an array of {min(others)} tasks, give --shard K/{min(others)}, or another folder",
        )
    width = len(str(shard.count))
    return folder / f"shard-{shard.number:0{width}}-of-{shard.count}"


def shards_of(trials: Sequence[Trial], count: int) -> list[int]:
    """For each trial the number of its shard, from 1 to `count`.

    All trials of one problem, in both regimes and all rounds, are in one shard: a table needs its yardstick, and
    search times of one machine. Problems are dealt from large to small, by operators times devices; each round of
    the deal turns round (1 to N, N to 1), so that shards have as many problems as each other, to one, and large
    ones alike. Equal sizes are dealt in a shuffled order that follows from their number alone: an axis of a grid,
    such as the memory, does not fall on one shard. The deal depends on the list of problems, not on the machine.
    """
    workloads: dict[str, Workload] = {}
    for trial in trials:
        workloads.setdefault(trial.workload.base.workload_id, trial.workload)
    names = list(workloads)
    random.Random(len(names)).shuffle(names)
    names.sort(key=lambda name: -_size(workloads[name]))
    dealt = {}
    for place, name in enumerate(names):
        turn, position = divmod(place, count)
        dealt[name] = 1 + (position if turn % 2 == 0 else count - 1 - position)
    return [dealt[trial.workload.base.workload_id] for trial in trials]


def _size(workload: Workload) -> int:
    return len(workload.profile.graph.operators) * workload.cluster.size
