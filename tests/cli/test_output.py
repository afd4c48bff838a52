"""Where output goes: links, pipes, a full disk, a reader who has gone, help without a command."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pipebench.cli.main import run
from pipebench.documents.document import PlannedProblem
from pipebench.domain.errors import ExitCode
from pipebench.formats.documents import write_document
from tests.builders import chain_problem, cluster, stages_plan
from tests.cli.command_line import CommandLine
from tests.nightly import mostly_at_night
from tests.track.made_nights import MACHINE, add_nights, measured, night, subject

SMALL = ("--profile", "resnet50", "--devices", "2", "--mini-batch", "8")


def started(*arguments: str, stdout: int, stderr: int = subprocess.PIPE) -> subprocess.Popen[str]:
    code = "from pipebench.cli.main import entry; entry()"
    return subprocess.Popen([sys.executable, "-c", code, *arguments], stdout=stdout, stderr=stderr, text=True)


def test_without_a_command_the_help_is_printed(pipebench: CommandLine) -> None:
    done = pipebench()
    assert (done.code, done.err) == (0, "")
    assert done.out == pipebench("--help").out
    assert re.search(r"\n  compare +run planners", done.out)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
@pytest.mark.parametrize(
    "arguments",
    mostly_at_night(
        [["list"], ["list", "--json"], ["schema"], ["--help"], ["draw", "gpipe"]], [["list", "--json"], ["schema"]]
    ),
)
def test_output_that_is_full_is_one_line(arguments: list[str]) -> None:
    with open("/dev/full", "wb") as full, started(*arguments, stdout=full.fileno()) as process:
        _, errors = process.communicate()
    assert process.returncode == 2
    assert errors == "pipebench: cannot write the output: no space left on device\n"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
def test_a_plan_that_no_file_takes_is_printed(pipebench: CommandLine) -> None:
    done = pipebench("plan", "uniform", *SMALL, "-o", "/dev/full")
    assert (done.code, done.err) == (2, "pipebench: cannot write '/dev/full': no space left on device\n")
    assert "verdict    valid, fits" in done.out


@pytest.mark.parametrize(
    "arguments",
    mostly_at_night(
        [["list"], ["schema"], ["--help"], ["show", "{plan}"], ["show", "{plan}", "--json"]],
        [["list"], ["show", "{plan}", "--json"]],
    ),
)
def test_a_reader_who_has_gone_is_no_error(pipebench: CommandLine, tmp_path: Path, arguments: list[str]) -> None:
    plan = tmp_path / "p.json"
    if "{plan}" in arguments:
        assert pipebench("plan", "uniform", *SMALL, "-o", str(plan)).code == 0
    reading, writing = os.pipe()
    os.close(reading)
    with started(*(a.format(plan=plan) for a in arguments), stdout=writing) as process:
        os.close(writing)
        _, errors = process.communicate()
    assert (process.returncode, errors) == (0, "")


GATES: dict[tuple[str, ...], ExitCode] = {
    ("track", "check", "--history", "{folder}/nights"): ExitCode.CONDITION_FAILED,
    ("track", "check", "--history", "{folder}/nights", "--json"): ExitCode.CONDITION_FAILED,
    ("track", "check", "--history", "{folder}/none"): ExitCode.NOTHING_RAN,
    ("validate", "{folder}/plan.json"): ExitCode.CONDITION_FAILED,
    ("validate", "{folder}/plan.json", "--json"): ExitCode.CONDITION_FAILED,
    ("plan", "uniform", *SMALL, "-o", "/dev/stdout"): ExitCode.READER_GONE,
}
"""Commands that fail, and how."""


@pytest.mark.parametrize("buffered", mostly_at_night([True, False], [True]))
@pytest.mark.parametrize("arguments", mostly_at_night(GATES, [each for each in GATES if "--json" not in each]))
def test_a_gate_fails_before_a_reader_who_has_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], buffered: bool
) -> None:
    """Of both streams, as in `pipebench … 2>&1 | true`."""
    monkeypatch.setenv("PYTHONUNBUFFERED", "" if buffered else "1")
    add_nights(tmp_path / "nights", MACHINE, [night(0), night(1, measured(exact={"work.states": 11}))])
    invalid = PlannedProblem(problem=chain_problem([1, 1], [1, 1], cluster(1)), plan=stages_plan([[0]]))
    write_document(tmp_path / "plan.json", "plan", invalid)
    reading, writing = os.pipe()
    os.close(reading)
    words = [word.format(folder=tmp_path) for word in arguments]
    with started(*words, stdout=writing, stderr=writing) as process:
        os.close(writing)
        assert process.wait() == GATES[arguments]


def test_a_gate_fails_before_a_reader_of_one_line(tmp_path: Path) -> None:
    """What is printed is longer than a pipe holds, so that most of it is written when the reader has gone."""
    labels = [f"mine{number}" + "x" * 200 for number in range(1000)]
    for number in range(2):
        found = [measured(subject=subject(label), exact={"work.states": number}) for label in labels]
        add_nights(tmp_path, MACHINE, [night(number, *found)])
    with started("track", "check", "--history", str(tmp_path), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("Night of")
        process.stdout.close()
        assert process.wait() == ExitCode.CONDITION_FAILED


def test_a_plan_goes_through_a_link(pipebench: CommandLine, tmp_path: Path) -> None:
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    link.symlink_to("real.json")
    assert pipebench("plan", "uniform", *SMALL, "-o", str(link)).code == 0
    assert link.is_symlink()
    assert pipebench("validate", str(real)).out.startswith("valid")


def test_a_plan_on_standard_output_is_alone_there(tmp_path: Path) -> None:
    """The summary goes to stderr, so that the plan can be piped on."""
    link, out = tmp_path / "stdout", tmp_path / "out.json"
    link.symlink_to("/dev/fd/1")
    with (
        out.open("wb") as file,
        started("plan", "uniform", *SMALL, "-o", str(link), stdout=file.fileno()) as process,
    ):
        _, errors = process.communicate()
    assert process.returncode == 0
    assert "throughput" in errors
    assert out.read_bytes().startswith(b'{"pipebench":"plan"')
    assert out.read_bytes().count(b"\n") == 1
    with started("plan", "uniform", *SMALL, "--json", "-o", str(link), stdout=subprocess.PIPE) as process:
        printed, errors = process.communicate()
    assert (process.returncode, printed) == (2, "")
    assert "both write to standard output" in errors


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A comparison in a folder."""
    folder = str(tmp_path_factory.mktemp("compared") / "store")
    assert run(["compare", "--planners", "uniform", *SMALL, "--out", folder]) == 0
    return folder


@pytest.mark.parametrize("arguments", [["show", "{store}"], ["schema", "plan"], ["show", "{store}", "--json"]])
def test_letters_that_the_output_has_not_are_no_error(store: str, arguments: list[str]) -> None:
    """A dagger marks the yardstick; what is data stays whole."""
    words = [word.format(store=store) for word in arguments]
    done, plain = (
        subprocess.run(
            [sys.executable, "-m", "pipebench", *words],
            capture_output=True,
            check=False,
            env=os.environ | {"PYTHONIOENCODING": encoding},
        )
        for encoding in ("ascii", "utf-8")
    )
    assert (done.returncode, done.stderr) == (0, b"")
    if plain.stdout.startswith(b"{"):
        assert json.loads(done.stdout) == json.loads(plain.stdout)
    else:
        assert done.stdout == plain.stdout.decode().replace("\u2020", "?").encode()
