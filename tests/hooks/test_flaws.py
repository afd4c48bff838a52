"""Descriptors that a plugin got wrong: one line each, and never an error of the host."""

import types
from collections.abc import Callable
from typing import Any

import pytest

from pipebench.domain.errors import PluginNotLoaded
from pipebench.domain.value import Value
from pipebench.hooks import hookimpl
from pipebench.hooks.descriptors import Capabilities, Format, Planner
from pipebench.hooks.discovery import ImportedPlugin, Provider
from pipebench.hooks.manager import Host


class Required(Value, frozen=True, kw_only=True):
    need: int


def planner(**fields: Any) -> Planner:
    return Planner(**{"name": "x", "summary": "", "load": "package:plan", **fields})


def found(position: int, **hooks: Callable[..., Any]) -> ImportedPlugin:
    module: Any = types.ModuleType(f"plugin{position}")
    for name, function in hooks.items():
        setattr(module, name, hookimpl(function))
    return ImportedPlugin(Provider(f"dist{position}", "1", "entry"), module)


def host_with(**hooks: Callable[..., Any]) -> Host:
    return Host([found(0, **hooks), found(1, pipebench_planners=lambda: [planner(name="good")])])


def leaves() -> Any:
    raise SystemExit(3)


@pytest.mark.parametrize(
    ("made", "cause"),
    [
        (leaves, "SystemExit: 3"),
        (lambda: None, "TypeError"),
        (lambda: "abc", "yields str, not Planner"),
        (lambda: [planner(name=None)], "None is not a usable name"),
        (lambda: [planner(name=3)], "3 is not a usable name"),
        (lambda: [planner(name="best")], "'best' is the name of the portfolio of all planners: no planner has it"),
        (lambda: [planner(summary="\ud800")], "summary has half characters"),
        (lambda: [planner(summary=None)], "summary is no text"),
        (lambda: [planner(load=None)], "load is no text"),
        (lambda: [planner(load="package.plan")], "not 'package.module:attribute'"),
        (lambda: [planner(options=dict)], "not a class of options"),
        (lambda: [planner(options=Required(need=1))], "not a class of options"),
        (lambda: [planner(options=Required)], "option 'need' has no default"),
        (lambda: [planner(deviations="all")], "deviations is not a tuple"),
        (lambda: [planner(kernels=("package.module:compile",))], "kernels is no text"),
        (
            lambda: [planner(kernels="package.module:one,package.two")],
            "kernels has 'package.two', not 'package.module",
        ),
        (lambda: [planner(capabilities=None)], "capabilities is not of type"),
        (lambda: [planner(capabilities=Capabilities(regimes=()))], "no regime"),
        (lambda: [planner(capabilities=Capabilities(graphs="tree"))], "Invalid enum value 'tree'"),
        (lambda: [planner(default_scheduler="1f1b")], "default_scheduler"),
    ],
)
def test_a_wrong_descriptor_is_one_line_and_the_other_plugin_works(made: Callable[[], Any], cause: str) -> None:
    host = host_with(pipebench_planners=made)
    assert set(host.slot("planners")) == {"good"}
    (line,) = map(str, host.troubles)
    assert cause in line
    assert "dist0" in line
    assert "\n" not in line


def test_a_wrong_component_does_not_take_its_neighbours_with_it() -> None:
    host = host_with(pipebench_planners=lambda: [planner(name=None), planner(name="kept")])
    assert set(host.slot("planners")) == {"good", "kept"}
    assert len(host.troubles) == 1


def test_a_format_needs_a_tuple_of_suffixes() -> None:
    host = host_with(pipebench_formats=lambda: [Format(name="f", summary="", load="a:b", suffixes=".x")])
    assert host.slot("formats") == {}
    assert "suffixes" in str(host.troubles[0])


def test_a_misspelt_hook_offers_the_nearest() -> None:
    host = host_with(pipebench_planner=lambda: [planner(name="lost")])
    assert set(host.slot("planners")) == {"good"}
    (line,) = map(str, host.troubles)
    assert "dist0" in line
    assert "no hook 'pipebench_planner' (did you mean 'pipebench_planners'?" in line


@pytest.mark.parametrize(
    ("load", "cause"),
    [
        ("tests.hooks.leaving:plan", "SystemExit: 4"),
        ("math:pi", "float is not callable"),
        ("math", "math"),
        ("", ""),
    ],
)
def test_what_cannot_be_loaded_says_why(load: str, cause: str) -> None:
    with pytest.raises(PluginNotLoaded) as caught:
        Host([]).load(planner(load=load))
    assert cause in str(caught.value)
    assert "\n" not in str(caught.value)
