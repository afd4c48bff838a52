"""The host: good plugins work beside broken ones, and each broken one is a single line."""

import os
import subprocess
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
    assert host.troubles == []
    assert list(planners) == sorted(planners)


@pytest.mark.parametrize(
    ("source", "cause"),
    [
        ("raise RuntimeError('no licence')", "RuntimeError: no licence"),
        ("import does_not_exist_anywhere", "ModuleNotFoundError"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("x = 1", "states no PIPEBENCH_API"),
        ("PIPEBENCH_API = 0", "hook API 0, this pipebench offers 1"),
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
    assert len(host.troubles) == 1
    warning = str(host.troubles[0])
    assert "\n" not in warning
    assert "broken-plugin 1.2" in warning
    assert cause in warning
    assert "pip uninstall broken-plugin" in warning


def test_a_plugin_for_a_newer_pipebench_asks_for_that(installed: Install) -> None:
    installed("newer-plugin", "PIPEBENCH_API = 99")
    (warning,) = map(str, Host().troubles)
    assert "hook API 99, this pipebench offers 1 (pip install --upgrade pipebench)" in warning


TWO = GOOD.replace("return [", 'return [Planner(name="{bad}", summary="", load="{module}:plan"), ')


@pytest.mark.parametrize(
    ("source", "told"),
    [
        (
            TWO.replace("{bad}", "Bad Name!"),
            "planner 'Bad Name!' of plugin half-one 1.2 (half_one) is left out: 'Bad Name!' is not a usable name",
        ),
        (
            TWO.replace("{bad}", "madpipe"),
            "planner 'madpipe' of plugin half-one 1.2 (half_one) is left out: the name is already provided by pip",
        ),
        (
            GOOD.replace("return [", "return [3, "),
            "one of the planners of plugin half-one 1.2 (half_one) is left out: it yields int, not Planner (",
        ),
        (
            GOOD.replace('load="', 'load="a b:'),
            "planner 'good' of plugin half-one 1.2 (half_one) is left out: load is 'a b:half_one:plan', not",
        ),
        (
            GOOD.replace("return [", "raise KeyError('oops') or ["),
            "the planners of plugin half-one 1.2 (half_one) are left out: KeyError: 'oops' (half_one.py, line 9)",
        ),
    ],
)
def test_a_warning_says_what_of_a_plugin_is_left_out(installed: Install, source: str, told: str) -> None:
    installed("half-one", source.replace("{name}", "good"))
    host = Host()
    host.slot("planners")
    (warning,) = map(str, host.troubles)
    assert warning.startswith(told)


@pytest.mark.parametrize(
    ("source", "cause"),
    [
        ("raise ImportError('boom')", "ImportError: boom"),
        pytest.param("x = 1", "states no PIPEBENCH_API", marks=pytest.mark.nightly),
        pytest.param(
            GOOD.replace("return [", "raise KeyError('oops') or ["), "KeyError", marks=pytest.mark.nightly
        ),
    ],
)
def test_a_broken_plugin_that_ships_is_never_to_be_removed(tmp_path: Path, source: str, cause: str) -> None:
    package = tmp_path / "pipebench_rannc"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "plugin.py").write_text(source.replace("{module}", "pipebench_rannc").replace("{name}", "rannc"))
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)])}

    def pipebench(*arguments: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "pipebench", *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    listed = pipebench("list", "planners")
    names = [line.split()[0] for line in listed.stdout.splitlines()]
    assert "madpipe" in names
    assert "rannc" not in names
    (warning,) = listed.stderr.splitlines()
    assert cause in warning
    assert "(rannc)" in warning
    assert "pip install --force-reinstall pipebench" in warning
    doctor = pipebench("plugin", "doctor")
    assert doctor.returncode == 1
    assert "(rannc): " in doctor.stdout
    assert cause in doctor.stdout
    assert "uninstall" not in warning + doctor.stdout + doctor.stderr


def test_a_clash_of_two_strangers_keeps_one_and_names_both(installed: Install) -> None:
    installed("zeta", GOOD.replace("{name}", "same"))
    installed("alpha", GOOD.replace("{name}", "same"))
    host = Host()
    assert host.find("planners", "same").provider.distribution == "alpha"
    assert len(host.troubles) == 1
    assert "zeta" in str(host.troubles[0])
    assert "alpha" in str(host.troubles[0])


def test_an_unknown_name_offers_the_nearest() -> None:
    with pytest.raises(PipebenchError, match="did you mean 'madpipe'"):
        Host().find("planners", "madpip")


def test_a_component_that_cannot_be_loaded_says_why(installed: Install) -> None:
    installed("half-good", GOOD.replace("{name}", "half").replace('load="{module}:plan"', 'load="nowhere:plan"'))
    host = Host()
    with pytest.raises(PluginNotLoaded, match="nowhere"):
        host.load(host.find("planners", "half").component)
