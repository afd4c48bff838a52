"""pipebench originals, as a user runs it: on made checkouts, and on the real ones where a variable names them."""

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.bench.originals.checkouts import DRIVER, partitioning, pipedream, piper, prints
from tests.cli.command_line import CommandLine, Done

WITH_COMPILER = pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler (c++) on the PATH")


def run(pipebench: CommandLine, folder: Path, system: str, *more: str) -> Done:
    return pipebench("originals", str(folder), "--system", system, "--yes", "--pairs", "1", *more)


def rows(pipebench: CommandLine, folder: Path, system: str, *more: str) -> list[dict[str, Any]]:
    return list(json.loads(run(pipebench, folder, system, "--json", *more).out)["rows"])


def test_nothing_runs_without_a_yes(pipebench: CommandLine, tmp_path: Path) -> None:
    folder = pipedream(tmp_path / "theirs", "open('ran', 'w')", net=(3.0, 5.0))
    done = pipebench("originals", str(folder), "--system", "pipedream")
    assert done.code == 2
    assert f"would run code of msr-fiddle/pipedream: {sys.executable} {folder / DRIVER}" in done.err
    assert "add --yes to run it" in done.err
    assert not list(tmp_path.rglob("ran"))


def test_one_operator_on_eight_devices(pipebench: CommandLine, tmp_path: Path) -> None:
    """8 ms of work without weights: a millisecond on eight replicas, and no cut to charge."""
    script = prints("0.008 if '--straight_pipeline' in sys.argv else 0.001")
    folder = pipedream(tmp_path / "theirs", script, net=(3.0, 5.0), twice=(6.0, 10.0))
    done = run(pipebench, folder, "pipedream", "--only", "net")
    assert f"runs code of msr-fiddle/pipedream: {sys.executable} {folder / DRIVER}" in done.err
    assert "3 equal" in done.out
    found = {(row["input"].split("/")[-2], row["label"]): row for row in rows(pipebench, folder, "pipedream")}
    assert {name for name, _ in found} == {"net", "twice"}
    assert found["net", ""]["theirs"]["value"] == 0.001
    assert found["net", ""]["ours"]["value"] == pytest.approx(0.001, rel=1e-12)
    assert found["net", "cuts charged"]["outcome"] == "equal"
    assert found["twice", ""]["outcome"] == "differs"
    assert found["twice", ""]["ours"]["value"] == pytest.approx(0.002, rel=1e-12)


def test_a_value_that_differs_is_an_error_of_its_own(pipebench: CommandLine, tmp_path: Path) -> None:
    folder = pipedream(tmp_path / "theirs", prints("0.0010001"), net=(3.0, 5.0))
    assert run(pipebench, folder, "pipedream", "--only", "charged").code == 1


@pytest.mark.parametrize(
    ("script", "said", "code"),
    [
        ("raise ValueError('in its code')", "theirs: exit status 1: ValueError: in its code", 5),
        ("print('nothing')", "it printed no value behind 'Time per stage in pipeline:'", 5),
        ("import time; time.sleep(60)", "theirs: no answer within 2 s", 4),
    ],
)
def test_why_there_is_no_value(pipebench: CommandLine, tmp_path: Path, script: str, said: str, code: int) -> None:
    folder = pipedream(tmp_path / "theirs", script, net=(3.0, 5.0))
    done = run(pipebench, folder, "pipedream", "--only", "charged", "--timeout", "2")
    assert said in " ".join(done.out.split())
    assert done.code == code


def test_an_interpreter_that_lacks_a_package(pipebench: CommandLine, tmp_path: Path) -> None:
    folder = pipedream(tmp_path / "theirs", "", net=(3.0, 5.0))
    (folder / DRIVER).write_text("import no_such_package")
    done = run(pipebench, folder, "pipedream")
    assert done.code == 4
    assert "No module named 'no_such_package' (it needs graphviz numpy" in done.err
    assert (
        "there is no 'no-python', an interpreter"
        in run(pipebench, folder, "pipedream", "--python", "no-python").err
    )


def test_what_is_asked_for_must_be_there(pipebench: CommandLine, tmp_path: Path) -> None:
    folder = pipedream(tmp_path / "theirs", prints("1"))
    assert "has no inputs: profiler/*/profiles/*/graph.txt" in run(pipebench, folder, "pipedream").err
    pipedream(folder, prints("1"), net=(3.0, 5.0))
    assert "no input or label has 'vgg' in it" in run(pipebench, folder, "pipedream", "--only", "vgg").err
    wrong = run(pipebench, folder, "pipedreams")
    assert wrong.code == 2
    assert "pipedream" in wrong.err


def test_the_checkout_stays_as_it_is(pipebench: CommandLine, tmp_path: Path) -> None:
    """A script that writes into its own folder is refused by the kernel, or told of."""
    script = "open(__file__ + '.mark', 'w')\n" + prints("0.001")
    folder = pipedream(tmp_path / "theirs", script, net=(3.0, 5.0))
    done = run(pipebench, folder, "pipedream", "--only", "charged", "--json")
    made = json.loads(done.out)
    written = list(folder.rglob("*.mark"))
    assert made["changed"] == [str(path) for path in written]
    assert written or made["rows"][0]["outcome"] == "failed"
    assert not list(folder.rglob("*.pyc"))


@pytest.mark.nightly
@WITH_COMPILER
def test_a_program_whose_own_main_runs_other_things(pipebench: CommandLine, tmp_path: Path) -> None:
    """One operator of 2 s: d replicas take 2 / d; the made program has no plan beyond 8 devices."""
    found = {row["label"]: row for row in rows(pipebench, piper(tmp_path / "theirs", 2.0, most=8), "piper")}
    own = found["as the file says"]
    assert (own["theirs"]["value"], own["ours"]["value"], own["outcome"]) == (0.5, 0.5, "equal")
    assert found["8 x 8 GiB"]["theirs"]["value"] == 0.25
    assert found["32 x 2 GiB"]["theirs"]["no_plan"]
    assert found["32 x 2 GiB"]["outcome"] == "differs"


@WITH_COMPILER
def test_a_program_that_reads_its_input_from_standard_input(pipebench: CommandLine, tmp_path: Path) -> None:
    found = rows(pipebench, partitioning(tmp_path / "theirs", "3.25"), "dnn-partitioning")
    assert [(row["label"], row["outcome"]) for row in found] == [("", "equal"), ("linearized", "equal")]
    folder, page = partitioning(tmp_path / "theirs", "3.5"), tmp_path / "table.md"
    done = run(pipebench, folder, "dnn-partitioning", "--only", "linearized", "--markdown", str(page))
    assert done.code == 0  # a linear order may be another one
    assert "hangs on a hash table" in done.out
    assert "| LayerGraphs/one | linearized | 3.5 | 3.25 | differs |" in page.read_text()
    assert "1 differs; msr-fiddle/dnn-partitioning at an unknown commit" in page.read_text()


@WITH_COMPILER
def test_a_source_that_does_not_compile(pipebench: CommandLine, tmp_path: Path) -> None:
    folder = partitioning(tmp_path / "theirs", "3.25")
    (folder / "throughput-dp" / "dp.cpp").write_text("no C++")
    done = run(pipebench, folder, "dnn-partitioning")
    assert done.code == 4
    assert "does not compile with 'c++'" in done.err


REAL = {
    "pipedream": ("pipedream", "vgg16"),
    "piper": ("piper", "bert32a100"),
    "dnn-partitioning": ("dnn-partitioning", "bert24_training"),
    "pase": ("PaSE", "rnnlm"),
}
"""System to the folder of its checkout, and a part of it that takes seconds."""


@pytest.mark.timeout(300)
@pytest.mark.parametrize("system", REAL)
def test_the_authors_own_checkouts(pipebench: CommandLine, system: str) -> None:
    """PIPEBENCH_ORIGINALS: a folder of checkouts; PIPEBENCH_ORIGINALS_PYTHON: what runs those in Python."""
    folder, only = REAL[system]
    checkouts = os.environ.get("PIPEBENCH_ORIGINALS", "")
    if not (Path(checkouts) / folder).is_dir() or not checkouts:
        pytest.skip(f"needs a checkout: PIPEBENCH_ORIGINALS names a folder with {folder}/ in it")
    python = os.environ.get("PIPEBENCH_ORIGINALS_PYTHON", sys.executable)
    found = rows(pipebench, Path(checkouts) / folder, system, "--only", only, "--python", python)
    assert found
    assert {row["outcome"] for row in found} == {"equal"}
