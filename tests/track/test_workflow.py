"""The nightly workflow: ours is made by the command, permissions are least, options are words and no code."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from pipebench.cli.main import run
from pipebench.domain.errors import PipebenchError
from pipebench.track.workflow.constraints import installed_versions, unpinned
from pipebench.track.workflow.nightly import ACTIONS, Nightly, action

WORKFLOWS = Path(__file__).parents[2] / ".github" / "workflows"
OURS = WORKFLOWS / "nightly.yml"
COMMAND = re.compile(r"# Made by `pipebench (.*)`: ")


def made(**fields: object) -> str:
    return Nightly(command=("pipebench", "track", "init"), **fields).text  # type: ignore[arg-type]


def test_ours_is_what_its_first_line_makes(tmp_path: Path) -> None:
    found = COMMAND.match(OURS.read_text())
    assert found is not None
    file = tmp_path / "nightly.yml"
    assert run([*shlex.split(found[1]), "--output", str(file)]) == 0
    assert file.read_text() == OURS.read_text()


def test_every_action_of_every_workflow_is_named_by_the_commit_that_is_known() -> None:
    """The hashes are those of the tags in the actions' repositories; one table has them."""
    used = [
        line.partition("uses: ")[2]
        for file in sorted(WORKFLOWS.glob("*.yml"))
        for line in file.read_text().splitlines()
        if "uses: " in line
    ]
    assert len(used) > 10
    known = {action(name) for name in ACTIONS}
    assert set(used) <= known
    assert all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", each) for each in known)


def test_our_night_runs_the_benchmarks_and_takes_versions_from_the_constraints() -> None:
    text = OURS.read_text()
    assert re.search(
        r"pytest tests/benchmarks [^\n]*\\\n +-p pipebench.testing.benchmarks --benchmark-enable", text
    )
    assert "pip install -c constraints.txt" in text
    assert unpinned((OURS.parents[2] / "constraints.txt").read_text()) == []


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (installed_versions(), []),
        ("numpy==2.0\nnumba >= 1\nnetworkx\npulp == 3.0  # \nHIGHSPY[x]===1.7\n", ["numba", "networkx"]),
        ("numpy==2.*\n", ["numpy", "numba", "networkx", "PuLP", "highspy"]),
    ],
)
def test_versions_that_are_left_open_are_said(text: str, left: list[str]) -> None:
    assert unpinned(text) == left


def test_an_installation_without_constraints_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["track", "init", "--install", "pip install ."]) == 0
    assert "names no constraints" in capsys.readouterr().err
    assert not (tmp_path / "constraints.txt").exists()
    (tmp_path / "constraints.txt").write_text("numpy==2.0\n")
    assert run(["track", "init", "--force"]) == 0
    assert "leaves the versions of numba, networkx, PuLP, highspy open" in capsys.readouterr().err


def test_who_runs_planners_may_not_write_and_who_writes_runs_none() -> None:
    yaml = pytest.importorskip("yaml")
    read = yaml.safe_load(made())
    assert read["permissions"] == {}
    measure, keep = read["jobs"]["measure"], read["jobs"]["keep"]
    assert measure["permissions"] == {"contents": "read"}
    assert keep["permissions"] == {"contents": "write"}
    assert not any(
        "pipebench track" in step.get("run", "") or "pip " in step.get("run", "") for step in keep["steps"]
    )


def test_options_reach_the_night_quoted() -> None:
    yaml = pytest.importorskip("yaml")
    text = made(record=("--planners", "mine[x=1],cmd:./it 'a b'"), budget="5m", budget_s=300.0, branch="h/1")
    steps = yaml.safe_load(text)["jobs"]["measure"]["steps"]
    record = next(step["run"] for step in steps if step.get("id") == "record")
    words = subprocess.run(
        ["bash", "-c", "pipebench() { printf '%s\\n' \"$@\"; }\n" + record],
        env={"RUNNER_TEMP": "/t", "GITHUB_OUTPUT": "/dev/null", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert [word for word in words if not word.startswith("diff: ")] == [
        *("track", "record", "--history", "/t/history", "--budget", "5m"),
        *("--planners", "mine[x=1],cmd:./it 'a b'"),
    ]
    assert yaml.safe_load(text)["jobs"]["measure"]["timeout-minutes"] == 45


@pytest.mark.parametrize(
    "fields",
    [
        {"branch": "a b"},
        {"branch": "-x"},
        {"branch": "a..b"},
        {"branch": "$(x)"},
        {"cron": "daily"},
        {"cron": '1 2 3 4 5"'},
        {"install": "pip install\nrm -rf ."},
        {"record": ("--planners", "${{ secrets.X }}")},
        {"benchmarks": "tests -k 'a"},
        {"benchmarks": "tests\nrm -rf ."},
    ],
)
def test_what_cannot_stand_in_a_workflow_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(PipebenchError):
        made(**fields)


def script_of(name: str) -> str:
    yaml = pytest.importorskip("yaml")
    jobs = yaml.safe_load(made())["jobs"]
    return next(str(step["run"]) for job in jobs.values() for step in job["steps"] if step.get("name") == name)


def git(folder: Path, *words: str) -> str:
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    return subprocess.run(
        ["git", "-C", str(folder), *who, *words], check=True, capture_output=True, text=True
    ).stdout


def bash(script: str, folder: Path, temp: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["bash", "-eo", "pipefail", "-c", script],
        cwd=folder,
        env={"RUNNER_TEMP": str(temp), "PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(temp)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone of a repository with one commit and no history yet."""
    origin, folder = tmp_path / "origin.git", tmp_path / "clone"
    subprocess.run(["git", "init", "-q", "--bare", str(origin)], check=True)
    subprocess.run(["git", "clone", "-q", str(origin), str(folder)], check=True, capture_output=True)
    (folder / "mine.py").write_text("")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    git(folder, "push", "-q", "origin", "HEAD:main")
    return folder


def test_the_history_goes_round_from_night_to_night(clone: Path, tmp_path: Path) -> None:
    fetch, keep = script_of("Fetch the history"), script_of("Add the night to its branch")
    for count in (1, 2):
        temp = tmp_path / f"temp{count}"
        temp.mkdir()
        assert bash(fetch, clone, temp).returncode == 0
        file = temp / "history" / "m.jsonl"
        assert (len(file.read_text().splitlines()) if file.exists() else 0) == count - 1
        with open(file, "a") as opened:
            opened.write(f"night {count}\n")
        done = bash(keep, clone, temp)
        assert done.returncode == 0, done.stderr
        git(clone, "checkout", "-q", "origin/main")
    git(clone, "fetch", "-q", "origin", "pipebench-history")
    assert git(clone, "ls-tree", "-r", "--name-only", "FETCH_HEAD").split() == ["m.jsonl"]
    assert git(clone, "show", "FETCH_HEAD:m.jsonl") == "night 1\nnight 2\n"


def test_a_history_that_lost_lines_is_not_pushed(clone: Path, tmp_path: Path) -> None:
    keep = script_of("Add the night to its branch")
    for content, code in (("night 1\nnight 2\n", 0), ("night 2\nnight 3\n", 1)):
        temp = tmp_path / f"temp{code}"
        (temp / "history").mkdir(parents=True)
        (temp / "history" / "m.jsonl").write_text(content)
        assert bash(keep, clone, temp).returncode == code
        git(clone, "reset", "-q", "--hard")
        git(clone, "checkout", "-q", "origin/main")


def test_the_first_night_starts_from_the_baselines_of_the_repository(clone: Path, tmp_path: Path) -> None:
    (clone / "baselines").mkdir()
    (clone / "baselines" / "m.jsonl").write_text("night 0\n")
    assert bash(script_of("Fetch the history"), clone, tmp_path).returncode == 0
    assert (tmp_path / "history" / "m.jsonl").read_text() == "night 0\n"


def test_a_repository_without_acknowledgements_is_checked(clone: Path, tmp_path: Path) -> None:
    """A file that is named must be there; one that is, stays as it is."""
    draw = script_of("Draw the history").replace("pipebench track page", "true")
    file = clone / "baselines" / "acknowledged.toml"
    for text in ("", "# ours\n"):
        assert bash(draw, clone, tmp_path).returncode == 0
        assert file.read_text() == text
        file.write_text("# ours\n")


def test_a_remote_that_cannot_be_reached_does_not_start_a_new_history(clone: Path, tmp_path: Path) -> None:
    git(clone, "remote", "set-url", "origin", str(tmp_path / "gone.git"))
    assert bash(script_of("Fetch the history"), clone, tmp_path).returncode not in (0, 2)
