"""Schedulers that strangers wrote, packages of about 100 lines each: placements and pairs, no change here."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from pipebench.check import check_schedule
from pipebench.domain.placement import PlacementKind, sets_of_stages
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import FiniteSchedule
from pipebench.domain.trace import Trace
from pipebench.hooks.context import Context
from pipebench.simulation.simulate import simulate
from tests.builders import chain_problem, cluster, mirrored_plan, stages_plan
from tests.cli.command_line import CommandLine
from tests.testing.generated import install_generated

HERE = Path(__file__).parent
PACKAGES = ("hanayo", "dualpipe")
LONGEST = 140
WORKLOAD = (
    "--profile",
    "bert-cpu",
    "--devices",
    "4",
    "--memory",
    "64GB",
    "--mini-batch",
    "32",
    "--regime",
    "sync",
)


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What makes the packages importable, with their metadata."""
    folder = tmp_path_factory.mktemp("installed")
    return [path for name in PACKAGES for path in install_generated(HERE / name, folder / name)]


@pytest.fixture(scope="module")
def schedulers(paths: list[str]) -> Iterator[dict[str, Any]]:
    """The packages' functions, imported as any user of them would."""
    sys.path[:0] = paths
    try:
        from pipebench_dualpipe import scheduler as dualpipe
        from pipebench_hanayo import scheduler as hanayo

        yield {"hanayo": hanayo.schedule, "dualpipe": dualpipe.schedule}
    finally:
        del sys.path[: len(paths)]


@pytest.fixture
def pipebench(
    paths: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> CommandLine:
    """The command where both are installed."""
    for path in paths:
        monkeypatch.syspath_prepend(path)
    return CommandLine(capsys)


def on_sets(kind: PlacementKind, devices: int, sweeps: int, mini_batch: int) -> tuple[Problem, Plan]:
    """Equal stages of 10 ns each way, as many on each device as there are sweeps."""
    count = devices * sweeps
    problem = chain_problem(
        [10] * count, [10] * count, cluster(devices), saved=[1] * count, mode="sync", mini_batch=mini_batch
    )
    plan = stages_plan([[stage] for stage in range(count)])
    sets = sets_of_stages(kind, devices, count)
    stages = tuple(replace(stage, devices=(number,)) for stage, number in zip(plan.stages, sets, strict=True))
    return problem, replace(plan, stages=stages, placement=kind if sweeps > 1 else "apart")


def simulated(schedule: Any, problem: Problem, plan: Plan) -> tuple[FiniteSchedule, Trace, int]:
    """Schedule, trace and the most bytes on a device, of an order that the check accepts."""
    made = schedule(problem, plan, Context(options=None))
    verdict = check_schedule(problem, plan, made)
    assert verdict.status == "valid", verdict.witness
    return made, simulate(problem, plan, made), max(verdict.peak_bytes.values())


@pytest.mark.parametrize("name", PACKAGES)
def test_the_kit_passes_without_a_waiver(pipebench: CommandLine, name: str) -> None:
    sources = list((HERE / name / "src").rglob("*.py"))
    assert not any("PIPEBENCH_WAIVED" in source.read_text() for source in sources)
    assert max(len(source.read_text().splitlines()) for source in sources) <= LONGEST
    done = pipebench("plugin", "check", name, "--json")
    assert done.code == 0, done.err
    outcomes = json.loads(done.out)["outcomes"]
    failed = [outcome for outcome in outcomes if outcome["status"] == "failed"]
    assert failed == []
    tried = {outcome["check"] for outcome in outcomes if outcome["status"] == "passed"}
    own = {"hanayo": {"v", "wave", "wave-replicas"}, "dualpipe": {"mirrored", "mirrored-replicas"}}[name]
    assert {f"validity-{case}" for case in own} | {"capabilities"} <= tried


@pytest.mark.parametrize(
    ("typed", "degrees", "placement"),
    [
        (("hanayo", "--vpp", "4"), "VPP4", "wave"),
        pytest.param(("hanayo", "--vpp", "2", "--pp", "4"), "PP4 VPP2", "wave", marks=pytest.mark.nightly),
        (("dualpipe",), "VPP1", "mirrored"),
    ],
)
def test_a_planner_that_ships_plans_for_them(
    pipebench: CommandLine, typed: tuple[str, ...], degrees: str, placement: str
) -> None:
    done = pipebench("compare", "--planners", "layout", "--schedulers", *typed, *WORKLOAD, "--json")
    (row,) = json.loads(done.out)["rows"]
    assert (row["status"], row["scheduler"], row["verdict"]) == ("ok", typed[0], "valid"), row
    assert row["claimed_s"] == pytest.approx(row["simulated_s"], rel=1e-9)
    assert degrees in row["notices"][0]
    assert row["notices"][0].endswith(f"placement {placement}")


def test_they_are_drawn_beside_one_that_refuses(paths: list[str]) -> None:
    """In a process of its own, as a user draws them."""
    path = os.pathsep.join([*paths, *filter(None, sys.path)])
    environment = os.environ | {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    typed = ("draw", "hanayo,zb-v,dualpipe", "--vpp", "4", "--micro-batches", "8", "--json")
    command = [sys.executable, "-m", "pipebench", *typed]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    assert [each["scheduler"] for each in json.loads(done.stdout)] == ["hanayo", "dualpipe"]
    assert "zb-v is not drawn" in done.stderr


@pytest.mark.parametrize("devices", [2, 4, 8])
@pytest.mark.parametrize("waves", [1, 2, 3])
@pytest.mark.parametrize("units", [1, 2])
def test_the_bubble_of_waves(schedulers: dict[str, Any], devices: int, waves: int, units: int) -> None:
    """2 D - 2 tasks of a stage, however many waves there are: (D - 1) / (2 W N + D - 1) of the time, with B = F.

    No order has less: the last device waits for D - 1 forwards, and behind its last backward D - 1 more follow.
    """
    count = units * devices
    problem, plan = on_sets("wave", devices, 2 * waves, count)
    _, trace, peak = simulated(schedulers["hanayo"], problem, plan)
    assert trace.total_ns == 10 * (4 * waves * count + 2 * devices - 2)
    assert peak <= devices * 2 * waves


def test_one_sweep_is_a_plain_pipeline(schedulers: dict[str, Any]) -> None:
    _, trace, peak = simulated(schedulers["hanayo"], *on_sets("wave", 4, 1, 8))
    assert trace.total_ns == 10 * 2 * (8 + 4 - 1)
    assert peak == 4


@pytest.mark.parametrize("devices", [2, 4, 6, 8])
@pytest.mark.parametrize("rounds", [2, 3, 4])
@pytest.mark.parametrize("overlap", [0.0, 0.5, 1.0])
def test_published_bubble_and_memory_of_dualpipe(
    schedulers: dict[str, Any], devices: int, rounds: int, overlap: float
) -> None:
    """(PP / 2 - 1) (F&B + B - 3 W) and PP + 1 activations (DeepSeek-V3 report, table 2), where F = W = B / 2.

    The bubble is that of the two innermost devices; outer ones pair more tasks and wait as long or less.
    """
    forward, backward, weight = 10, 20, 10
    problem = chain_problem(
        [forward] * devices,
        [backward] * devices,
        cluster(devices),
        saved=[1] * devices,
        mode="sync",
        mini_batch=rounds * devices,
    )
    costs = problem.profile.costs[0]
    split = tuple(replace(each, weight_gradient_s=(weight / 1e9,)) for each in costs.operators)
    profile = replace(problem.profile, costs=(replace(costs, operators=split),))
    problem = replace(problem, profile=profile, overlap=overlap)
    made, trace, peak = simulated(schedulers["dualpipe"], problem, mirrored_plan([[k] for k in range(devices)]))
    pair = forward + backward - overlap * min(forward, backward)
    idle = [trace.total_ns - _busy_ns(trace, lane) for lane in range(devices)]
    assert max(idle) == idle[devices // 2] == (devices / 2 - 1) * (pair + backward - 3 * weight)
    assert peak == devices + 1
    assert all(lane.together for lane in made.lanes)


def _busy_ns(trace: Trace, lane: int) -> int:
    """While the device runs a task; two at once count once."""
    busy = until = 0
    spans = zip(trace.start_ns, trace.end_ns, trace.lane, strict=True)
    for start, end in sorted((start, end) for start, end, number in spans if number == lane):
        busy += max(0, end - max(start, until))
        until = max(until, end)
    return busy
