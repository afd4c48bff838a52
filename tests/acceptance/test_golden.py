"""The version of the model that scores goes with its figures: neither changes without the other."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.acceptance import golden


@pytest.fixture(scope="module")
def figures() -> golden.Figures:
    """Those of now."""
    return golden.figures()


def test_figures_change_with_the_version_and_only_with_it(figures: golden.Figures) -> None:
    """See `pipebench.costs.version` for what to do when this fails."""
    assert golden.complaint(now=figures) == ""


def test_the_cases_say_something(figures: golden.Figures) -> None:
    """Most schedules run, every kind of refusal is among them, and no two cases are alike."""
    answers = [each["schedule"][:2] for each in figures.values() if "schedule" in each]
    assert sum(status == "valid" for status, _ in answers) > 25
    assert {rule for status, rule in answers if status == "invalid"} >= {"memory", "C4", "dependency"}
    assert {each["plan"][1] for each in figures.values()} == {"", "coverage"}
    assert {each.get("pins") for each in figures.values()} >= {"valid", "invalid"}
    assert len({msgspec.json.encode(each) for each in figures.values()}) > len(figures) - 5


def test_changed_figures_ask_for_a_new_version(
    figures: golden.Figures, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "golden.json"
    golden.write(file, figures)
    assert golden.complaint(file, figures) == ""
    real = golden.estimate

    def slower(problem: Any, plan: Any) -> int:
        return real(problem, plan) + plan.copies - 1

    monkeypatch.setattr(golden, "estimate", slower)
    told = golden.complaint(file)
    assert told.startswith(f"results changed: raise MODEL_VERSION and run `{golden.HOW}`")
    changed = [line.partition(": ")[0] for line in told.splitlines()[1:]]
    assert changed == sorted(case.name for case in golden.cases() if case.plan.copies > 1)
    assert "copies: estimate: 418 was written down, now 419" in told


def test_a_new_version_asks_for_its_figures(
    figures: golden.Figures, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "golden.json"
    golden.write(file, figures)
    monkeypatch.setattr(golden, "MODEL_VERSION", golden.MODEL_VERSION + 1)
    assert f"written down are of {golden.MODEL_VERSION - 1}: run `{golden.HOW}`" in golden.complaint(file, figures)
    golden.write(file, figures)
    assert golden.complaint(file, figures) == ""
