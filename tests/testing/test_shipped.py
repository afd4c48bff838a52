"""Every plugin that ships passes the kit."""

import threading
from pathlib import Path

import pytest

from pipebench.hooks.discovery import installed_entry_points, provider_of
from pipebench.hooks.manager import Host
from pipebench.testing.kit import check_plugin, slot_checks
from pipebench.testing.targets import check_targets
from pipebench.testing.verdicts import outcome_of
from tests.nightly import mostly_at_night

SHIPPED = [point.name for point in installed_entry_points() if provider_of(point).distribution == "pipebench"]


@pytest.fixture(scope="module")
def host() -> Host:
    return Host()


@pytest.mark.parametrize(
    "plugin",
    mostly_at_night(
        [name for name in SHIPPED if name != "torch"],
        ["analytic", "simulate", "schedules", "baselines", "alpa"],
    ),
)
def test_the_kit_finds_no_fault(host: Host, plugin: str) -> None:
    report = check_plugin(host, plugin)
    failed = [f"{o.component}: {o.check}: {o.reason}" for o in report.outcomes if o.status == "failed"]
    assert failed == []
    assert report.count("passed") > report.count("waived")


@pytest.mark.parametrize("slot", ["profilers", pytest.param("executors", marks=pytest.mark.nightly)])
def test_the_kit_finds_no_fault_in_torch(host: Host, slot: str) -> None:
    pytest.importorskip("torch", reason="it checks a plugin that needs the torch extra")
    targets = check_targets(host, "torch")
    assert {target.slot for target in targets} == {"profilers", "executors"}
    (target,) = (target for target in targets if target.slot == slot)
    outcomes = [outcome_of(check, target.waived.get(check.name)) for check in slot_checks(host, target)]
    assert [f"{outcome.check}: {outcome.reason}" for outcome in outcomes if outcome.status == "failed"] == []


def test_an_optimum_that_ships_is_tried_out(host: Host) -> None:
    report = check_plugin(host, "contiguous-exact", only=("optimality", "claims"))
    assert [outcome.status for outcome in report.outcomes] == ["passed", "passed"]


def test_what_others_write_beside_the_command_is_not_the_planners(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = threading.Event()

    def write() -> None:
        number = 0
        while not ended.wait(0.001):
            Path(f"{number}.txt").touch()
            number += 1

    other = threading.Thread(target=write)
    other.start()
    try:
        report = check_plugin(host, "uniform", only=("state",))
    finally:
        ended.set()
        other.join()
    assert [outcome.status for outcome in report.outcomes] == ["passed"]
