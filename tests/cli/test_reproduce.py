"""pipebench reproduce on an artefact of three cells: what it prints, writes, keeps, and refuses."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pipebench.cli import progress
from pipebench.cli.commands import reproduce
from pipebench.domain.errors import ExitCode, PipebenchError
from pipebench.formats.profiles.shipped import profiles_folder
from pipebench.hooks.discovery import ImportedPlugin, Provider, installed_entry_points, load_plugins
from pipebench.hooks.manager import Host
from tests.cli import tiny_artefact
from tests.report.html.page import Page


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    plugins, _ = load_plugins(installed_entry_points())
    found = ImportedPlugin(Provider("tiny", "1", "tiny"), tiny_artefact)
    monkeypatch.setattr(reproduce, "open_host", lambda: Host([*plugins, found]))


def run(*arguments: str) -> Result:
    # As the group has it: click keeps a command's help option from its first call on.
    extra = {"help_option_names": ["-h", "--help"]}
    return CliRunner().invoke(reproduce.command, arguments, standalone_mode=False, **extra)


def done(*arguments: str) -> Result:
    result = run(*arguments)
    if result.exception is not None:
        raise result.exception
    assert result.return_value == ExitCode.OK
    return result


def test_claims_stand_beside_what_was_measured() -> None:
    result = done("tiny/one")
    assert "3 cells, 1 cannot be run, 2 to run: about 2 min" in result.stderr
    assert "holds: Two devices do" in result.stdout
    assert "“two | are plenty” (section 1)" in result.stdout
    assert "2 plans" in result.stdout
    assert "3 cells: 2 ok, 1 unsupported" in result.stdout


def test_the_folder_has_chart_table_and_series(tmp_path: Path) -> None:
    done("tiny/one", "--out", str(tmp_path))
    assert (tmp_path / "tiny-one.svg").read_text().startswith("<svg")
    page = (tmp_path / "tiny-one.md").read_text()
    assert "](tiny-one.svg)" in page
    assert "| Two devices do | “two \\| are plenty” (section 1) | 2 plans | holds | they do |" in page
    lines = (tmp_path / "tiny-one.csv").read_text().splitlines()
    assert lines[0] == "panel,curve,kind,x,y"
    assert [line.split(",")[3] for line in lines[1:]] == ["2", "3"]


def test_tables_are_printed_whole(tmp_path: Path) -> None:
    result = done("tiny/one", "--out", str(tmp_path))
    lines = result.stdout.splitlines()
    start = lines.index("a table")
    assert [line.split() for line in lines[start + 1 : start + 4]] == [
        ["P", "of", "all"],
        ["2", "many" * 30],
        ["3", "many" * 30],
    ]
    page = (tmp_path / "tiny-one.md").read_text()
    assert f"a table\n\n| P | of all |\n| --- | --- |\n| 2 | {'many' * 30} |" in page


def test_timelines_are_drawn_of_new_and_of_stored_cells(tmp_path: Path) -> None:
    """Text below the claims, an SVG beside the chart."""
    assert "the larger one\ngpu0" in done("tiny/one").stdout
    first = done("tiny/one", "--out", str(tmp_path))
    drawn = (tmp_path / "tiny-one-timelines.svg").read_text()
    assert drawn.startswith("<svg")
    assert "the larger one" in drawn
    assert "](tiny-one-timelines.svg)" in (tmp_path / "tiny-one.md").read_text()
    (tmp_path / "tiny-one-timelines.svg").unlink()
    again = done("tiny/one", "--out", str(tmp_path))
    assert "2 in the store" in again.stderr
    assert (tmp_path / "tiny-one-timelines.svg").read_text() == drawn
    assert again.stdout == first.stdout


def test_what_the_store_holds_is_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second trial is interrupted: the first is kept, the next run does the second alone."""
    started: list[str] = []
    whole = progress.Progress.starting

    def interrupted(self: progress.Progress, trial: object) -> None:
        started.append(str(trial))
        if len(started) == 2:
            raise KeyboardInterrupt
        whole(self, trial)  # type: ignore[arg-type]

    monkeypatch.setattr(progress.Progress, "starting", interrupted)
    result = run("tiny/one", "--out", str(tmp_path))
    assert isinstance(result.exception, PipebenchError)
    assert result.exception.exit_code == ExitCode.INTERRUPTED
    assert (
        "1 in the store, 1 cannot be run, 1 to run: about 50 s" in done("tiny/one", "--out", str(tmp_path)).stderr
    )
    first = (tmp_path / "tiny-one.csv").read_bytes()
    assert (
        "2 in the store, 1 cannot be run, 0 to run: about 0 s" in done("tiny/one", "--out", str(tmp_path)).stderr
    )
    assert (tmp_path / "tiny-one.csv").read_bytes() == first
    assert len(started) == 3
    assert "2 to run" in done("tiny/one", "--out", str(tmp_path), "--fresh").stderr


def test_json_holds_everything() -> None:
    told = json.loads(done("tiny/one", "--json").stdout)
    assert [finding["judgement"] for finding in told["findings"]] == ["holds"]
    assert [result["row"]["status"] for result in told["results"]] == ["ok", "unsupported", "ok"]
    assert "depth" in told["results"][1]["row"]["reason"]
    assert len(told["figure"]["panels"][0]["curves"][0]["points"]) == 2


def test_a_profile_of_the_user_is_scaled_to_the_inputs_of_the_artefact() -> None:
    """Half the pixels take half the time, all else equal: the profile that ships has inputs of 12 MB."""
    file = str(profiles_folder() / "resnet50.json")
    told = json.loads(done("tiny/one", "--json", "--profile", file).stdout)
    rows = [result["row"] for result in told["results"]]
    for shipped, halved in ((rows[0], rows[3]), (rows[2], rows[5])):
        assert halved["problem_id"] != shipped["problem_id"]
        assert 0.3 < halved["simulated_s"] / shipped["simulated_s"] < 0.6


def test_full_runs_the_other_cells() -> None:
    told = json.loads(done("tiny/one", "--full", "--json").stdout)
    assert [result["cell"]["devices"] for result in told["results"]] == [2, 2, 4]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("tiny/two",), "unknown artefact 'tiny/two'"),
        (("tiny/one", "--fresh"), "--out"),
        (("tiny/one", "--profile", "nowhere.txt"), "nowhere.txt"),
    ],
)
def test_mistakes_are_told(arguments: tuple[str, ...], words: str) -> None:
    result = run(*arguments)
    assert isinstance(result.exception, PipebenchError)
    assert words in str(result.exception)


def test_one_page_has_every_claim_its_verdict_and_its_command(tmp_path: Path) -> None:
    file = tmp_path / "claims.html"
    done("tiny/one", "--html", str(file))
    page = Page(file.read_text())
    texts = [text for _, text in page.words]
    assert {"1 claims: 1 holds", "Two devices do", "2 plans", "pipebench reproduce tiny/one"} <= set(texts)
    assert "“two | are plenty” (section 1)" in texts
    assert page.count("svg") == 2  # its figure and its timelines


def test_all_artefacts_are_run_and_one_that_fails_costs_itself_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find, slot_of = Host.find, Host.slot

    def found(self: Host, slot: str, name: str) -> object:
        if name == "tiny/none":
            raise PipebenchError("its profiles are gone")
        return find(self, slot, name)

    monkeypatch.setattr(Host, "find", found)

    def two(self: Host, slot: str) -> object:
        there = slot_of(self, slot)
        return dict.fromkeys(("tiny/none", "tiny/one"), there["tiny/one"]) if slot == "artefacts" else there

    monkeypatch.setattr(Host, "slot", two)
    file = tmp_path / "claims.html"
    result = run("--all", "--html", str(file))
    assert result.return_value == ExitCode.SOME_FAILED
    assert "warning: tiny/none: its profiles are gone" in result.stderr
    assert "Two devices do" in file.read_text()


def test_one_artefact_or_all() -> None:
    for words in ((), ("tiny/one", "--all")):
        assert "name one artefact, or say --all" in str(run(*words).exception)
