"""The promise to plugins, held by code: nothing of API 1 has gone or changed, what is deprecated stays."""

import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

import pipebench
from pipebench.hooks import API_VERSION, api
from pipebench.hooks.api import DEPRECATIONS, GRACE_MINORS, OLDEST_API_VERSION, RETIRING, Deprecation, minor
from pipebench.hooks.discovery import installed_entry_points, load_plugins
from tests.hooks.distributions import GOOD, install
from tests.hooks.offered import broken_promises, offered

PROMISED = Path(__file__).parent


def promised(version: int) -> dict[str, dict[str, str]]:
    return msgspec.json.decode((PROMISED / f"api-{version}.json").read_bytes())


@pytest.mark.parametrize("version", range(OLDEST_API_VERSION, API_VERSION + 1))
def test_nothing_that_a_version_promised_has_gone(version: int) -> None:
    assert broken_promises(promised(version), offered()) == []


def test_what_is_offered_is_what_is_written_down() -> None:
    """After an addition: python -m tests.hooks.offered."""
    assert offered() == promised(API_VERSION)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda given: given["hooks"].pop("pipebench_planners"), "hooks pipebench_planners is gone"),
        (lambda given: given["Planner"].update(load="bytes"), "Planner load was 'str', is 'bytes'"),
        (lambda given: given["Planner"].update(colour="str"), "Planner colour is new and has no default"),
        (lambda given: given["Context"].pop("count()"), "Context count() is gone"),
        (lambda given: given.pop("Capabilities"), "Capabilities is gone"),
    ],
)
def test_a_broken_promise_is_found(change: Callable[[dict[str, dict[str, str]]], object], told: str) -> None:
    now = offered()
    change(now)
    assert told in broken_promises(promised(API_VERSION), now)


def test_an_addition_with_a_default_breaks_nothing() -> None:
    now = offered()
    now["Planner"]["colour"] = "str = 'red'"
    now["Context"]["paint()"] = "(self) -> None"
    assert broken_promises(promised(API_VERSION), now) == []


def too_early(deprecation: Deprecation) -> bool:
    since, removed = minor(deprecation.since), minor(deprecation.removed_in)
    return since[0] == removed[0] and removed[1] - since[1] < GRACE_MINORS


def test_deprecations_stay_long_enough_and_go_when_they_are_due() -> None:
    for deprecation in DEPRECATIONS:
        assert not too_early(deprecation), deprecation
        assert minor(pipebench.__version__) < minor(deprecation.removed_in), f"due: {deprecation}"
    assert too_early(Deprecation("x", "0.3", "0.4", "y"))
    assert not too_early(Deprecation("x", "0.3", "0.5", "y"))


def test_versions_that_load_are_a_range_and_old_ones_say_until_when() -> None:
    assert OLDEST_API_VERSION <= API_VERSION
    assert set(RETIRING) == set(range(OLDEST_API_VERSION, API_VERSION))


def test_a_superseded_version_loads_with_one_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "API_VERSION", 2)
    monkeypatch.setattr(api, "RETIRING", {1: "0.9"})
    monkeypatch.syspath_prepend(tmp_path)
    install(tmp_path, "older-plugin", GOOD.replace("{name}", "older"))
    monkeypatch.delitem(sys.modules, "older_plugin", raising=False)
    points = [point for point in installed_entry_points() if point.name == "older_plugin"]
    found, troubles = load_plugins(points)
    assert len(found) == 1
    (line,) = map(str, troubles)
    assert "hook API 1, which pipebench 0.9 will not load (now: 2)" in line
    assert "pip install --upgrade older-plugin" in line


@pytest.mark.parametrize(
    ("version", "told"),
    [(None, "states no"), (0, "hook API 0"), (2, "offers 1"), ("1", "hook API '1'"), (1.0, "hook API 1.0")],
)
def test_other_versions_are_refused(version: object, told: str) -> None:
    assert told in (api.refusal(version) or "")
    assert api.refusal(1) is None
