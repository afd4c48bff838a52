"""The host: good plugins work beside broken ones, and each broken one is a single line."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pipebench.domain.errors import PipebenchError, PluginNotLoaded
from pipebench.hooks.manager import Host
from tests.hooks.distributions import GOOD, install

Install = Callable[[str, str], None]


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    monkeypatch.syspath_prepend(tmp_path)

    def put(distribution: str, source: str) -> None:
        monkeypatch.delitem(sys.modules, distribution.replace("-", "_"), raising=False)
        install(tmp_path, distribution, source)

    return put


def test_shipped_plugins_load_without_a_warning() -> None:
    host = Host()
    planners = host.slot("planners")
    assert {"madpipe", "graphpipe", "pipedream", "data-parallel", "uniform", "contiguous-exact"} <= set(planners)
    for slot in ("schedulers", "executors", "profilers", "models"):
        assert host.slot(slot)
    assert host.warnings == []
    assert list(planners) == sorted(planners)


@pytest.mark.parametrize(
    ("source", "cause"),
    [
        ("raise RuntimeError('no licence')", "RuntimeError: no licence"),
        ("import does_not_exist_anywhere", "ModuleNotFoundError"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("x = 1", "states no PIPEBENCH_API"),
        ("PIPEBENCH_API = 99", "hook API 99, this pipebench offers 1"),
        (GOOD.replace("return [", "raise KeyError('oops') or ["), "KeyError"),
        (GOOD.replace("return [Planner", "return [dict").replace("load=", "x="), "yields dict, not Planner"),
        (GOOD.replace("{name}", "a,b"), "not a usable name"),
        (GOOD.replace("{name}", "madpipe"), "already provided by pipebench"),
    ],
)
def test_a_broken_plugin_is_one_warning_and_the_rest_work(installed: Install, source: str, cause: str) -> None:
    installed("broken-plugin", source)
    installed("good-plugin", GOOD.replace("{name}", "good"))
    host = Host()
    assert {"good", "madpipe"} <= set(host.slot("planners"))
    assert len(host.warnings) == 1
    warning = host.warnings[0]
    assert "\n" not in warning
    assert "broken-plugin 1.2" in warning
    assert cause in warning
    assert "pip uninstall broken-plugin" in warning


def test_a_clash_of_two_strangers_keeps_one_and_names_both(installed: Install) -> None:
    installed("zeta", GOOD.replace("{name}", "same"))
    installed("alpha", GOOD.replace("{name}", "same"))
    host = Host()
    assert host.find("planners", "same").provider.distribution == "alpha"
    assert len(host.warnings) == 1
    assert "zeta" in host.warnings[0]
    assert "alpha" in host.warnings[0]


def test_an_unknown_name_offers_the_nearest() -> None:
    with pytest.raises(PipebenchError, match="did you mean 'madpipe'"):
        Host().find("planners", "madpip")


def test_a_component_that_cannot_be_loaded_says_why(installed: Install) -> None:
    installed("half-good", GOOD.replace("{name}", "half").replace('load="{module}:plan"', 'load="nowhere:plan"'))
    host = Host()
    with pytest.raises(PluginNotLoaded, match="nowhere"):
        host.load(host.find("planners", "half").component)
