"""What a suite file means: its grids, its names, its files."""

from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipebench.bench.suites.selection import Selection, select
from pipebench.domain.errors import PipebenchError
from pipebench.domain.problem import Pins
from pipebench.hooks.manager import Host
from tests.bench.suite_files import GRAPH, HEAD, selected, workload, write
from tests.nightly import examples

GB = 10**9


@settings(max_examples=examples(20), deadline=None)
@given(
    devices=st.lists(st.integers(1, 16), min_size=1, max_size=4, unique=True),
    memory=st.lists(st.integers(1, 40), min_size=1, max_size=4, unique=True),
    rates=st.lists(st.integers(1, 40), min_size=1, max_size=3, unique=True),
    batches=st.lists(st.integers(1, 8), min_size=1, max_size=3, unique=True),
)
def test_lists_are_crossed_and_the_last_runs_fastest(
    tmp_path_factory: pytest.TempPathFactory,
    devices: list[int],
    memory: list[int],
    rates: list[int],
    batches: list[int],
) -> None:
    table = workload(
        devices=devices,
        memory=[f"{each}GB" for each in memory],
        bandwidth=[f"{each}GB/s" for each in rates],
        mini_batch=[8 * each for each in batches],
    )
    found = selected(write(tmp_path_factory.mktemp("suite"), HEAD + table))
    assert [
        (w.cluster.size, w.cluster.memory_bytes, w.cluster.levels[-1].bandwidth_bytes_s, w.mini_batch)
        for w in found
    ] == [
        (size, gigabytes * GB, rate * GB, 8 * batch)
        for size, gigabytes, rate, batch in product(devices, memory, rates, batches)
    ]
    assert len({w.name for w in found}) == len(found)
    assert len({w.problem("sync").problem_id for w in found}) == len(found)


def test_a_workload_is_named_after_what_varies(tmp_path: Path) -> None:
    tables = workload(devices=[2, 4], memory=["3GB", "4GB"]) + workload(name="big", memory=["20GB"]) + workload()
    assert [w.name for w in selected(write(tmp_path, HEAD + tables))] == [
        "resnet50 devices=2 memory=3GB",
        "resnet50 devices=2 memory=4GB",
        "resnet50 devices=4 memory=3GB",
        "resnet50 devices=4 memory=4GB",
        "big memory=20GB",
        "resnet50",
    ]


def test_samples_for_each_device_follow_the_devices(tmp_path: Path) -> None:
    table = workload(profile="mmt", cluster="summit", memory=None, devices=[4, 8], mini_batch_per_device=[8, 16])
    assert [w.mini_batch for w in selected(write(tmp_path, HEAD + table))] == [32, 64, 64, 128]


def test_all_that_a_workload_says_reaches_the_problem(tmp_path: Path) -> None:
    table = workload(
        link_mode="delay", mini_batch=64, micro_batch=8, tp=1, dp=2, pp=4, reserve=0.25, optimizer="adam"
    )
    (found,) = selected(write(tmp_path, HEAD + table))
    problem = found.problem("async")
    assert problem.cluster.link_mode == "delay"
    assert problem.pins == Pins(tensor_parallel=1, data_parallel=2, pipeline=4, micro_batch=8, reserve=0.25)
    assert (problem.mini_batch, problem.regime.optimizer, problem.regime.mode) == (64, "adam", "async")


def test_a_model_is_profiled_as_on_the_command_line(tmp_path: Path) -> None:
    model, profiler = "mmt[branches=2,layers=1]", "analytic[max_tensor_parallel=2]"
    table = workload(
        profile=None, model=model, profiler=profiler, cluster="summit", memory=None, devices=[4, 8], mini_batch=64
    )
    found = selected(write(tmp_path, HEAD + table))
    for each in found:
        asked = Selection(
            models=(model,), profiler=profiler, cluster="summit", devices=each.cluster.size, mini_batch=64
        )
        (alone,) = select(Host(), asked)
        assert each.problem("sync") == alone.problem("sync")
        assert each.model == alone.model == "mmt[branches=2,layers=1]"
    assert found[0].profile is found[1].profile


def test_files_are_relative_to_the_suite_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    folder = tmp_path / "suite"
    folder.mkdir()
    (folder / "two.txt").write_text(GRAPH)
    (folder / "lab.toml").write_text('[[levels]]\nname = "wire"\nbandwidth_gb_s = 3\n')
    write(folder, HEAD + workload(profile="two.txt[batch=4]", cluster="lab.toml", devices=2))
    (found,) = selected("../suite/mine.toml")
    assert [operator.name for operator in found.profile.graph.operators] == ["node1", "node2"]
    assert (found.cluster.name, found.cluster.levels[0].bandwidth_bytes_s) == ("lab", 3e9)
    (tmp_path / "elsewhere" / "lab.toml").write_text('[[levels]]\nname = "wire"\nbandwidth_gb_s = 5\n')
    (found,) = selected("../suite/mine.toml", cluster="lab.toml")
    assert found.cluster.levels[0].bandwidth_bytes_s == 5e9


def test_a_profile_is_read_once_for_a_whole_grid(tmp_path: Path) -> None:
    tables = workload(devices=[2, 4, 8], mini_batch=[8, 16]) + workload(name="again", devices=6)
    found = selected(write(tmp_path, HEAD + tables))
    assert len(found) == 7
    assert len({id(w.profile) for w in found}) == 1


def test_the_same_problem_in_two_suites_is_one_workload(tmp_path: Path) -> None:
    first = write(tmp_path, HEAD + workload(devices=[2, 4]), "first.toml")
    second = write(tmp_path, HEAD.replace("mine", "other") + workload(devices=[4, 8]), "second.toml")
    assert [w.cluster.size for w in selected(first, second)] == [2, 4, 8]
    assert [w.cluster.size for w in selected(f"{first},{second}")] == [2, 4, 8]


@pytest.mark.parametrize(("count", "works"), [(100_000, True), (100_001, False)])
def test_a_grid_is_bounded_before_it_is_built(tmp_path: Path, count: int, works: bool) -> None:
    from pipebench.bench.suites import load_suite
    from pipebench.bench.suites.grid import grid_points

    tables = workload(name="small") + workload(mini_batch=list(range(1, count)))
    chosen = load_suite(write(tmp_path, HEAD + tables))
    if works:
        assert sum(1 for _ in grid_points(chosen, {})) == count
        return
    with pytest.raises(PipebenchError) as caught:
        next(grid_points(chosen, {}))
    assert "100,001 workloads" in str(caught.value)
    assert "workloads[1] makes 100,000" in str(caught.value)
    assert sum(1 for _ in grid_points(chosen, {"mini_batch": 8})) == 2
