"""The setting of a foreign file holds where the command line says nothing."""

import json
from pathlib import Path

import pytest

from pipebench.bench.suites.selection import Selection, select
from pipebench.hooks.manager import Host
from tests.formats.test_foreign_errors import PIPER


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "net.json"
    path.write_text(json.dumps(PIPER))
    return str(path)


def test_what_the_file_says(file: str) -> None:
    (workload,) = select(Host(), Selection(profiles=(file,)))
    assert workload.mini_batch == 8
    assert workload.cluster.memory_bytes == 10**9
    assert workload.cluster.levels[0].bandwidth_bytes_s == 1e9
    assert workload.notices[-1] == "net: memory 1.00 GB, bandwidth 1.00 GB/s, mini-batch 8, as its file says"
    assert any("read as s" in notice for notice in workload.notices)


def test_what_is_said_wins(file: str) -> None:
    asked = Selection(profiles=(file,), memory="2GB", bandwidth="3GB/s", mini_batch=16, devices=2)
    (workload,) = select(Host(), asked)
    assert (workload.mini_batch, workload.cluster.memory_bytes) == (16, 2 * 10**9)
    assert workload.cluster.levels[0].bandwidth_bytes_s == 3e9
    assert "as its file says" not in " ".join(workload.notices)


@pytest.mark.parametrize(
    ("said", "notices"),
    [("", ("net: figures are of a micro-batch of 1 samples: nothing says how many",)), ("# micro_batch: 1\n", ())],
)
def test_a_table_that_does_not_say_of_how_many_samples_it_is(
    said: str, notices: tuple[str, ...], tmp_path: Path
) -> None:
    table = tmp_path / "net.csv"
    table.write_text(said + "name,forward_ms,backward_ms,activation_MB,weight_MB\na,1,2,3,4\n")
    (workload,) = select(Host(), Selection(profiles=(str(table),), memory="1GB"))
    assert [each for each in workload.notices if "figures" in each] == list(notices)


def test_our_own_profiles_have_no_notices() -> None:
    (workload,) = select(Host(), Selection(profiles=("mmt",)))
    assert workload.notices == ()
