"""pipebench compare --shard and --array, and merge, as a user types them."""

from pathlib import Path

import pytest

from tests.bench.store.made import stored
from tests.bench.test_merge import shard, store
from tests.cli.command_line import CommandLine

TRIALS = ("compare", "--planners", "uniform", "--profile", "resnet50", "--devices", "2", "--memory", "16GB")


def test_conflicts_and_missing_shards_have_their_exit_codes(pipebench: CommandLine, tmp_path: Path) -> None:
    keys = [stored(number).key for number in range(2)]
    one = str(shard(tmp_path / "one", keys, [1, 2], 1, stored(0, simulated_s=1.0)))
    other = str(store(tmp_path / "other", stored(0, status="timeout")))
    done = pipebench("merge", one, other, "--out", str(tmp_path / "all"))
    assert done.code == 1
    assert f"{one} and {other} differ in status (ok, timeout), simulated_s (1.0, -)" in done.err
    assert "--prefer first or --prefer newest" in done.err
    assert not (tmp_path / "all").exists()
    done = pipebench("merge", one, other, "--out", str(tmp_path / "all"), "--prefer", "first")
    assert done.code == 5
    assert "shard 2 of 2 is missing" in done.err
    assert (tmp_path / "all").exists()
    assert pipebench("merge", one, "--out", str(tmp_path / "all")).code == 2


def test_counts_of_three_stores_are_not_more_than_there_are(pipebench: CommandLine, tmp_path: Path) -> None:
    """One trial in three stores: two conflicts, and two equal rows that are left out, of one trial."""
    for name, times in (("conflict", (1.0, 2.0, 3.0)), ("equal", (1.0, 1.0, 1.0))):
        for place, seconds in enumerate(times):
            store(tmp_path / name / str(place), stored(0, simulated_s=seconds))
    done = pipebench("merge", str(tmp_path / "conflict"), "--out", str(tmp_path / "all"))
    assert done.code == 1
    assert "2 conflicts between stores: nothing is written" in done.err
    done = pipebench("merge", str(tmp_path / "equal"), "--out", str(tmp_path / "all"))
    assert done.code == 0
    assert "1 rows, 2 equal ones left out" in done.out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--shard", "1/2"), "name it with --out"),
        (("--shard", "3/2", "--out", "s"), "there is no shard 3 of 2"),
        (("--shard", "0/0", "--out", "s"), "write K/N"),
        (("--shard", "1/99999", "--out", "s"), "write K/N"),
        (("--shard", "x", "--out", "s"), "write K/N"),
        (("--shard", "1/2", "--array", "--out", "s"), "leave one of them out"),
        (("--array", "--out", "s"), "this is no task of a Slurm job array"),
    ],
)
def test_a_shard_that_is_none_is_one_line(
    pipebench: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("ID", "COUNT", "MIN"):
        monkeypatch.delenv(f"SLURM_ARRAY_TASK_{name}", raising=False)
    done = pipebench(*TRIALS, *options)
    assert done.code == 2
    assert words in done.err
    assert len(done.err.strip().splitlines()) == 1
    assert not (tmp_path / "s").exists()
