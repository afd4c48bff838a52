"""Where output goes: links, pipes, a full disk, a reader who has gone, help without a command."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command_line import CommandLine

SMALL = ("--profile", "resnet50", "--devices", "2", "--mini-batch", "8")


def started(*arguments: str, stdout: int) -> subprocess.Popen[str]:
    code = "from pipebench.cli.main import entry; entry()"
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stdout=stdout, stderr=subprocess.PIPE, text=True
    )


def test_without_a_command_the_help_is_printed(pipebench: CommandLine) -> None:
    done = pipebench()
    assert (done.code, done.err) == (0, "")
    assert done.out == pipebench("--help").out
    assert re.search(r"\n  compare +run planners", done.out)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
@pytest.mark.parametrize("arguments", [["list"], ["list", "--json"], ["schema"], ["--help"], ["draw", "gpipe"]])
def test_output_that_is_full_is_one_line(arguments: list[str]) -> None:
    with open("/dev/full", "wb") as full, started(*arguments, stdout=full.fileno()) as process:
        _, errors = process.communicate()
    assert process.returncode == 2
    assert errors == "pipebench: cannot write the output: no space left on device\n"


@pytest.mark.parametrize(
    "arguments", [["list"], ["schema"], ["--help"], ["show", "{plan}"], ["show", "{plan}", "--json"]]
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
