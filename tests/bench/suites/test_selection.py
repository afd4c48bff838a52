"""What the user says besides a suite: it replaces the suite's word, zero included."""

from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from pipebench.bench.suites.selection import Selection, select
from pipebench.cli.workload_options import chosen_workloads, workload_options
from pipebench.domain.errors import PipebenchError
from pipebench.domain.problem import Pins
from pipebench.formats.clusters import load_cluster
from pipebench.formats.documents import write_document
from pipebench.hooks.manager import Host
from tests.bench.suite_files import HEAD, selected, workload, write

QUICK = [
    "transformer[ffn=8192,heads=32,hidden=2048]",
    "mmt",
    "llm[ffn=11008,heads=32,hidden=4096,layers=32,sequence=2048]",
]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"devices": 0}, "a cluster cannot have 0 devices"),
        ({"devices": -1}, "a cluster cannot have -1 devices"),
        ({"mini_batch": 0}, "mini_batch is 0"),
        ({"micro_batch": 0}, "micro_batch is 0"),
        ({"tp": 0}, "tensor_parallel is 0"),
        ({"dp": 0}, "data_parallel is 0"),
        ({"pp": 0}, "pipeline is 0"),
        ({"reserve": 1.0}, "reserve is 1.0"),
        ({"memory": ""}, "'' is not an amount of memory"),
        ({"memory": "12 potatoes"}, "'12 potatoes' is not an amount of memory"),
        ({"bandwidth": "0GB/s"}, "'0GB/s' is not a bandwidth"),
        ({"link_mode": "hafl"}, "unknown link mode 'hafl' (did you mean 'half'?"),
        ({"optimizer": "adamw"}, "unknown optimizer 'adamw' (did you mean 'adam'?"),
    ],
)
@pytest.mark.parametrize("what", [{}, {"suites": ("chains",)}, {"profiles": ("mmt",)}, {"models": ("mmt",)}])
def test_wrong_numbers_are_the_users_and_no_suite_is_blamed(
    what: dict[str, Any], asked: dict[str, Any], expected: str
) -> None:
    with pytest.raises(PipebenchError) as caught:
        select(Host(), Selection(**what, **asked))
    assert str(caught.value).removeprefix("pin ").startswith(expected)


def test_each_option_replaces_its_own_key_in_every_workload() -> None:
    found = selected("quick", devices=4, memory="20GB", bandwidth="1GB/s", link_mode="full")
    assert [w.cluster.name for w in found] == ["madpipe", "summit", "dgx-h100"]
    assert [w.mini_batch for w in found] == [64, 128, 64]
    for each in found:
        assert each.cluster.size == 4
        assert each.cluster.memory_bytes == 20 * 10**9
        assert {level.bandwidth_bytes_s for level in each.cluster.levels} == {1e9}
        assert each.cluster.link_mode == "full"
    found = selected("quick", mini_batch=256, micro_batch=2, dp=1, reserve=0.1, optimizer="sgd", cluster="summit")
    assert {w.mini_batch for w in found} == {256}
    assert {w.pins for w in found} == {Pins(micro_batch=2, data_parallel=1, reserve=0.1)}
    assert {w.regime.optimizer for w in found} == {"sgd"}
    assert {w.cluster.name for w in found} == {"summit"}


def test_a_cluster_document_has_the_devices_that_it_has(tmp_path: Path) -> None:
    """Unless fewer are asked for."""
    file = tmp_path / "links.json"
    write_document(file, "cluster", load_cluster("summit", devices=4))
    assert [w.cluster.size for w in selected("quick", cluster=str(file))] == [4, 4, 4]
    assert {w.cluster.size for w in selected("quick", cluster=str(file), devices=2)} == {2}
    with pytest.raises(PipebenchError, match="has 4 devices, not 8"):
        selected("quick", cluster=str(file), devices=8)


def test_a_pin_that_is_not_said_stays_the_suites(tmp_path: Path) -> None:
    file = write(tmp_path, HEAD + workload(micro_batch=8) + workload(name="plain"))
    assert [w.pins for w in selected(file, dp=1)] == [Pins(micro_batch=8, data_parallel=1), Pins(data_parallel=1)]


def test_a_said_value_takes_the_place_of_a_list() -> None:
    found = selected("chains", devices=4, bandwidth="12GB/s")
    assert [w.cluster.memory_bytes // 10**9 for w in found] == list(range(3, 17)) * 4
    assert {w.cluster.size for w in found} == {4}
    assert [w.mini_batch for w in selected("branches", mini_batch=512)] == [512] * 36


def test_workloads_that_a_said_value_makes_equal_run_once(tmp_path: Path) -> None:
    file = write(tmp_path, HEAD + workload(devices=2) + workload(name="large", devices=4) + workload(devices=[8]))
    assert [w.cluster.size for w in selected(file)] == [2, 4, 8]
    assert [(w.name, w.cluster.size) for w in selected(file, devices=6)] == [("resnet50", 6)]


def test_suites_come_first_and_nothing_named_is_quick() -> None:
    asked = Selection(suites=("quick",), profiles=("transformer",), models=("mmt[branches=2,layers=1]",))
    found = select(Host(), asked)
    assert [w.model for w in found] == [*QUICK, "transformer", "mmt[branches=2,layers=1]"]
    assert [w.name for w in found] == [*QUICK, "", ""]
    assert [w.model for w in select(Host(), Selection())] == QUICK
    assert [w.model for w in select(Host(), Selection(profiles=("mmt",)))] == ["mmt"]


def test_the_options_of_the_command_line_are_the_fields(tmp_path: Path) -> None:
    file = write(tmp_path, HEAD + workload(devices=[2, 4]))

    @click.command()
    @workload_options
    def command(**choice: Any) -> None:
        click.echo(" ".join(f"{w.model}/{w.cluster.size}" for w in chosen_workloads(Host(), choice)))

    done = CliRunner().invoke(command, ["--suite", "quick", "--suite", file])
    assert done.output.split() == [*(f"{name}/8" for name in QUICK), "resnet50/2", "resnet50/4"]
    done = CliRunner().invoke(command, ["--devices", "0"])
    assert (done.exit_code, "'--devices'" in done.output) == (2, True)
