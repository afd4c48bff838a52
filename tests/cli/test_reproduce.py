"""pipebench reproduce on an artefact of three cells: what it prints, writes, keeps, and refuses."""

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pipebench.cli import progress
from pipebench.cli.commands.papers import reproduce
from pipebench.domain import artefact
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
    assert "3 cells: 2 ok, 1 skipped; 1 not judged: no answer of the planner" in result.stdout


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


def test_what_no_planner_answered_is_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    """A claim that a planner finds no plan would hold of one that is not installed."""
    judged: list[str] = []

    def judge(self: tiny_artefact.Tiny, results: Sequence[artefact.Result]) -> list[artefact.Finding]:
        judged.extend(result.row.status for result in results)
        return []

    monkeypatch.setattr(tiny_artefact.Tiny, "judge", judge)
    done("tiny/one")
    assert judged == ["ok", "ok"]


def test_json_holds_everything() -> None:
    told = json.loads(done("tiny/one", "--json").stdout)
    assert [finding["judgement"] for finding in told["findings"]] == ["holds"]
    assert [result["row"]["status"] for result in told["results"]] == ["ok", "skipped", "ok"]
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


def test_steps_are_priced_as_a_framework_runs_them(tmp_path: Path) -> None:
    """On profiles it adds the optimizer and waits; the page says so, and how to make it again."""
    page = tmp_path / "claims.md"
    plain = json.loads(done("tiny/one", "--json").stdout)
    told = json.loads(done("tiny/one", "--framework", "megatron", "--json", "--markdown", str(page)).stdout)
    assert [result["cell"].get("framework") for result in plain["results"]] == [None] * 3
    for before, after in ((plain["results"][place], told["results"][place]) for place in (0, 2)):
        assert after["cell"]["framework"] == "megatron"
        assert after["row"]["simulated_s"] > before["row"]["simulated_s"]
    assert "micro-batch 8, framework megatron" in page.read_text()
    assert "pipebench reproduce tiny/one --framework megatron" in page.read_text()


def test_full_runs_the_other_cells() -> None:
    told = json.loads(done("tiny/one", "--full", "--json").stdout)
    assert [result["cell"]["devices"] for result in told["results"]] == [2, 2, 4]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("tiny/two",), "unknown artefact 'tiny/two'"),
        (("tiny/one", "--fresh"), "--out"),
        (("tiny/one", "--retry-failed"), "--out"),
        (("tiny/one", "--profile", "nowhere.txt"), "nowhere.txt"),
        (("tiny/one", "--framework", "megatro"), "did you mean 'megatron'?"),
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
    assert {"1 claim: 1 holds.", "Two devices do", "2 plans", "pipebench reproduce tiny/one"} <= set(texts)
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
    assert "tiny/none: its profiles are gone" in file.read_text()
    assert "Two devices do" in file.read_text()


def only(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Let `--all` mean these artefacts."""
    slot_of = Host.slot

    def some(self: Host, slot: str) -> object:
        there = slot_of(self, slot)
        return {name: there[name] for name in names} if slot == "artefacts" else there

    monkeypatch.setattr(Host, "slot", some)


def test_a_failure_that_a_claim_is_about_is_no_failed_run() -> None:
    expected = done("tiny/late")
    assert "2 cells: 1 ok, 1 timeout (1 expected)" in expected.stdout
    unexpected = run("tiny/too-late")
    assert unexpected.exception is None
    assert unexpected.return_value == ExitCode.SOME_FAILED
    assert "2 cells: 1 ok, 1 timeout; 1 not judged" in unexpected.stdout


def test_failures_of_the_store_stand_until_they_are_to_be_tried_again(tmp_path: Path) -> None:
    run("tiny/too-late", "--out", str(tmp_path))
    again = run("tiny/too-late", "--out", str(tmp_path))
    assert again.return_value == ExitCode.SOME_FAILED
    assert "2 in the store, 0 to run" in again.stderr
    assert "1 in the store, 1 to run" in run("tiny/too-late", "--out", str(tmp_path), "--retry-failed").stderr


def test_all_say_first_how_long_they_take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cells and the time of each and of all stand before anything runs; what artefacts share counts once."""
    only(monkeypatch, "tiny/one", "tiny/late")
    fresh = done("--all", "--out", str(tmp_path)).stderr
    head, _, rest = fresh.partition("tiny/one: ")
    assert [line.split() for line in head.splitlines()] == [
        ["tiny/one", "3", "cells", "about", "2", "min"],
        ["tiny/late", "2", "cells", "about", "51", "s"],
        ["all", "5", "cells", "about", "3", "min"],
        ["looking", "up", "what", "the", "store", "holds", "…"],
        ["0", "cells", "in", "the", "store,", "3", "to", "run", "(shared", "ones", "once):", "about", "2", "min"],
    ]
    assert "tiny/late: 2 cells, 1 in the store, 1 to run: about 1 s" in rest
    assert "4 cells in the store, 0 to run" in done("--all", "--out", str(tmp_path)).stderr


def test_the_pages_of_a_store_are_the_same_whenever_they_are_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    only(monkeypatch, "tiny/one", "tiny/late")
    files = {"--markdown": tmp_path / "claims.md", "--html": tmp_path / "claims.html"}
    words = ("--all", "--out", str(tmp_path / "out"), *(str(word) for pair in files.items() for word in pair))
    done(*words)
    first = {file: file.read_bytes() for file in files.values()}
    done(*words)
    assert {file: file.read_bytes() for file in files.values()} == first


def test_the_markdown_page_says_what_was_measured_how_and_for_how_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    only(monkeypatch, "tiny/one", "tiny/late")
    page = tmp_path / "claims.md"
    done("--all", "--out", str(tmp_path / "out"), "--markdown", str(page))
    text = page.read_text()
    assert "2 claims: 2 holds." in text
    assert "| [tiny](#tiny) | 2 | 0 | 0 | 0 |" in text
    assert "made by `pipebench reproduce --all --out FOLDER --markdown FILE`" in text
    assert str(tmp_path) not in text
    today = datetime.now(UTC).date().isoformat()
    assert f"- date: {today}\n" in text
    assert re.search(r"- time: 4 cells took \d+ s in all\n", text)
    assert "- run: all of the paper's cells, but a subset in tiny/one\n" in text
    assert "#### holds: Two devices do\n\nPaper: “two \\| are plenty” (section 1)\n\nWhy: they do" in text
    assert "Measured:\n\n- 2 plans" in text
    assert "- repeat it: `pipebench reproduce tiny/one`" in text
    assert "- costs: profiles resnet50\n- costs: cluster madpipe, 2 to 3 devices, memory 16GB" in text
    assert "- ended: 2 cells: 1 ok, 1 timeout (1 expected)" in text


def test_all_cells_are_run_where_they_fit_in_the_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, "tiny/one")
    page = tmp_path / "claims.md"
    done("--all", "--full-within", "3min", "--markdown", str(page))
    assert "`pipebench reproduce tiny/one --full`" in page.read_text()
    assert "--full-within 3min" in page.read_text()
    done("--all", "--full-within", "2min", "--markdown", str(page))
    assert "--full`" not in page.read_text()
    assert "leave --full-within out" in str(run("--all", "--full", "--full-within", "3min").exception)


def test_a_page_is_refused_before_anything_runs(tmp_path: Path) -> None:
    assert "end it in .md" in str(run("tiny/one", "--markdown", str(tmp_path / "claims.html")).exception)
    assert "there is no folder" in str(run("tiny/one", "--markdown", str(tmp_path / "a" / "b.md")).exception)
    (tmp_path / "folder.md").mkdir()
    done = run("tiny/one", "--markdown", str(tmp_path / "folder.md"))
    assert (done.stdout, "cannot write '" in str(done.exception)) == ("", True)


def test_what_a_stopped_run_did_not_reach_is_on_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, "tiny/one", "tiny/late")

    def stop(self: progress.Progress, trial: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(progress.Progress, "starting", stop)
    page = tmp_path / "claims.md"
    result = run("--all", "--markdown", str(page))
    assert isinstance(result.exception, PipebenchError)
    assert result.exception.exit_code == ExitCode.INTERRUPTED
    assert "- tiny/late: the run was stopped before it" in page.read_text()
    assert "a subset, 3 of 3 cells; stopped with 2 left" in page.read_text()


def test_one_artefact_or_all() -> None:
    for words in ((), ("tiny/one", "--all")):
        assert "name one artefact, or say --all" in str(run(*words).exception)
