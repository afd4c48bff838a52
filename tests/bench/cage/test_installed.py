"""How often plugins are asked what they offer: what ships once in a process, others for each host."""

import sys
from pathlib import Path
from typing import Any

import pytest

from pipebench.bench.cage import installed
from pipebench.hooks.descriptions import Catalogue
from pipebench.hooks.discovery import Provider
from tests.hooks.distributions import GOOD, install


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The distributions that are asked, as it happens; `other-one` stands beside what ships."""
    install(tmp_path, "other-one", GOOD.replace("{name}", "other"))
    monkeypatch.syspath_prepend(tmp_path)
    real, found = installed.ask_plugins, []

    def ask_plugins(server: Any, work: str, kind: Any, chosen: list[str]) -> Any:
        found.extend({name.split()[0] for name in chosen})
        return real(server, work, kind, chosen)

    monkeypatch.setattr(installed, "ask_plugins", ask_plugins)
    return found


def test_what_ships_is_asked_once_and_others_each_time(asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = installed.installed_host(), installed.installed_host()
    assert asked == ["pipebench", "other-one", "other-one"]
    assert first.catalogue == second.catalogue
    assert {"uniform", "other"} <= set(second.slot("planners"))
    monkeypatch.setattr(sys, "path", [*sys.path, "/elsewhere"])
    installed.installed_host()
    assert asked[3:] == ["pipebench", "other-one"]


def test_trouble_with_what_ships_is_not_kept(asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    healthy = installed.ask_plugins
    broken = Provider("pipebench", "1", "models")
    monkeypatch.setattr(installed, "ask_plugins", lambda *_: (Catalogue(), [(broken, "it ended")]))
    assert any("models" in str(each) for each in installed.installed_host().troubles)
    monkeypatch.setattr(installed, "ask_plugins", healthy)
    assert installed.installed_host().troubles == []
    assert "pipebench" in asked
