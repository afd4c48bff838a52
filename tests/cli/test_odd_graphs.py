"""GraphPipe on graphs and sizes that are legal and strange, as a user would give them."""

import re
from pathlib import Path

import pytest

from tests.cli.command_line import CommandLine
from tests.nightly import mostly_at_night

PLANNERS = "graphpipe,graphpipe[variant=paper]"


def profile(folder: Path, operators: int, edges: list[tuple[int, int]]) -> list[str]:
    """Options for a graph of so many operators, the first of which reads the input, profiled at one sample."""
    lines = [
        f"node{number} -- Linear -- forward_compute_time={2.0 + number}, backward_compute_time={4.0 + number}, "
        "activation_size=1000000.0, parameter_size=4000000.0"
        for number in range(1, operators + 1)
    ]
    lines.append(
        "node0 -- Input -- forward_compute_time=0, backward_compute_time=0, activation_size=4, parameter_size=0"
    )
    lines += [f"\tnode{before} -- node{after}" for before, after in [(0, 1), *edges]]
    file = folder / "odd.txt"
    file.write_text("\n".join(lines) + "\n")
    return ["--profile", f"{file}[batch=1]", "--memory", "16GB"]


@pytest.mark.parametrize("devices", mostly_at_night(["1", "4"], ["4"]))
@pytest.mark.parametrize(
    ("operators", "edges"),
    [
        pytest.param(6, [(1, 2), (2, 3), (4, 5), (5, 6)], id="two chains", marks=pytest.mark.nightly),
        pytest.param(4, [], id="nothing joined"),
        pytest.param(7, [(1, 3), (2, 3), (3, 4), (3, 5), (6, 5), (5, 7)], id="sources and sinks"),
        pytest.param(3, [(1, 2), (1, 3)], id="two sinks", marks=pytest.mark.nightly),
    ],
)
def test_disconnected_graphs_and_several_sources_and_sinks(
    pipebench: CommandLine, tmp_path: Path, operators: int, edges: list[tuple[int, int]], devices: str
) -> None:
    """Mini-batch 7 besides, which no profiled size but 1 divides."""
    given = profile(tmp_path, operators, edges)
    done = pipebench(
        "compare", "--planners", PLANNERS, *given, "--devices", devices, "--mini-batch", "7", "--regime", "sync"
    )
    assert done.code == 0
    lines = [line.split() for line in done.out.splitlines() if not line.startswith(" ")]
    compared = [line for line in lines if line and line[0] in PLANNERS.split(",")]
    assert [float(line[1]) > 0 for line in compared] == [True, True]


def test_a_part_that_is_put_in_a_line_is_named(pipebench: CommandLine, tmp_path: Path) -> None:
    given = profile(tmp_path, 4, [(1, 3), (1, 4), (2, 4)])
    done = pipebench(
        "compare", "--planners", "graphpipe", *given, "--devices", "2", "--mini-batch", "8", "--regime", "sync"
    )
    assert done.code == 0
    said = " ".join(done.out.split())
    assert "not series-parallel between 'node1' and 'node4': 4 operators put in a line" in said


@pytest.mark.parametrize("planner", ["graphpipe", "graphpipe[variant=paper]"])
def test_devices_that_cannot_be_used_are_said(pipebench: CommandLine, tmp_path: Path, planner: str) -> None:
    """Two operators and two samples keep four devices busy at most."""
    given = profile(tmp_path, 2, [(1, 2)])
    done = pipebench("plan", planner, *given, "--devices", "32", "--mini-batch", "2")
    assert done.code == 0
    assert re.search(r"uses [1-4] of 32 devices", done.out)


def test_one_device_gets_one_stage(pipebench: CommandLine, tmp_path: Path) -> None:
    given = profile(tmp_path, 4, [(1, 2), (1, 3), (2, 4), (3, 4)])
    done = pipebench("plan", "graphpipe", *given, "--devices", "1", "--mini-batch", "4")
    assert done.code == 0
    rows = [line.split() for line in done.out.splitlines()]
    assert [row[:2] for row in rows if len(row) > 5 and row[0].isdigit()] == [["0", "0"]]


def test_a_micro_batch_that_does_not_divide_is_refused(pipebench: CommandLine, tmp_path: Path) -> None:
    given = profile(tmp_path, 2, [(1, 2)])
    done = pipebench("plan", "graphpipe", *given, "--mini-batch", "8", "--micro-batch", "3")
    assert done.code == 2
    assert "3 does not divide the mini-batch 8" in done.err
