"""Bad input: one line that names what is wrong and where, an exit code, never a traceback."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import CommandLine

GRAPH = (
    "node1 -- A -- forward_compute_time=1.0, backward_compute_time=2.0, activation_size=8.0, parameter_size=4.0\n"
    "node2 -- B -- forward_compute_time=1.0, backward_compute_time=2.0, activation_size=8.0, parameter_size=4.0\n"
    "\tnode1 -- node2\n"
)


SMALL = ["--profile", "resnet50", "--devices", "2", "--mini-batch", "8"]


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (["compare", "--planners", "madpip"], 2, "did you mean 'madpipe'"),
        (["compare", "--planners", "madpipe,,graphpipe"], 2, "empty name"),
        (["compare", "--planners", "pipedream[ordr=level]"], 2, "did you mean 'order'"),
        (["compare", "--planners", "pipedream[order=sideways]"], 2, "'sideways' (valid: branch, level)"),
        (["compare", "--planners", "madpipe", "--profile", "resnet5"], 2, "did you mean 'resnet50'"),
        (["compare", "--planners", "madpipe", "--models", "resnet"], 2, "did you mean 'resnet50'"),
        (
            ["compare", "--planners", "madpipe", "--profile", "mmt", "--cluster", "sumit"],
            2,
            "did you mean 'summit'",
        ),
        (["compare", "--planners", "madpipe", "--profile", "mmt", "--devices", "0"], 2, "0"),
        (["compare", "--planners", "madpipe", "--profile", "mmt", "--memory", "12 apples"], 2, "apples"),
        (["compare", "--planners", "madpipe", "--profile", "mmt", "--bandwidth", "0GB/s"], 2, "bandwidth"),
        (["compare", "--planners", "madpipe", "--profile", "mmt", "--mini-batch", "0"], 2, "'--mini-batch': 0 is"),
        *(
            (
                ["compare", "--planners", "uniform", *SMALL, f"{flag}={wrong}"],
                2,
                f"'{flag}': {wrong} is not from {least}",
            )
            for flag, wrong, least in (
                ("--tp", -1, 1),
                ("--micro-batch", 0, 1),
                ("--dp", 2**31 + 1, 1),
                ("--overlap", 1.5, 0),
            )
        ),
        (
            ["compare", "--planners", "uniform", *SMALL, "-n", "two"],
            2,
            "'two' is not a whole number from 1",
        ),
        (
            ["compare", "--planners", "uniform", *SMALL, "--overlap", "half"],
            2,
            "'half' is not a number from 0",
        ),
        (["draw", "1f1b", "--stages", "4k"], 2, "'--stages': '4k' is not a whole number"),
        (["draw", "1f1b", "--transfer", "fast"], 2, "'--transfer': 'fast' is not a number"),
        (
            ["compare", "--planners", "uniform", *SMALL, "--tp", "3", "--dp", "2"],
            2,
            "--tp 3 x --dp 2 = 6 devices, there are 2",
        ),
        (["compare", "--planners", "madpipe", "--profile", "mmt", "--micro-batch", "3"], 2, "does not divide"),
        (
            ["compare", "--planners", "uniform", "--profile", "resnet50", "--cluster", "dgx-a100"],
            2,
            "(it has those of V100-SXM2-16GB: take a cluster of them, a model in its place",
        ),
        (["compare", "--planners", "madpipe", "--suite", "quik"], 2, "did you mean 'quick'"),
        (["compare", "--planners", "madpipe", "--schedulers", "1f1c"], 2, "did you mean '1f1b'"),
        (["compare", "--planners", "madpipe", "--executors", "simulat"], 2, "did you mean 'simulate'"),
        *(
            ([*verb, *small, f"--timeout={wrong}"], 2, "'--timeout'")
            for wrong in ("0", "-1", "nan", "inf", "1e300", "soon")
            for verb, small in ((["compare", "--planners", "uniform"], []), (["plan", "uniform"], SMALL))
        ),
        (["compare", "--planners", "cmd:"], 2, "names no program"),
        (["compare", "--planners", "cmd:./nofile -x"], 2, "there is no program './nofile'"),
        (["compare", "--planners", "uniform,cmd:no-such-program"], 2, "'no-such-program' on the PATH"),
        (["compare", "--planners", "cmd:/dev/null"], 2, "'/dev/null' is not executable"),
        (["compare", "--planners", "uniform", "--profile", "resnet50[saved=inputs]"], 2, "has no options"),
        (["compare", "--planners", "uniform", *SMALL, "--dp", "8"], 2, "--dp 8 = 8 devices, there are 2"),
        (["plan", "uniform", *SMALL, "-o", "/proc/p.json"], 2, "cannot write '/proc/p.json'"),
        (["compare", "--planners", "./nowhere.py"], 2, "nowhere.py"),
        (["compare", "--planners", 'cmd:"./mine'], 2, "quotes do not match"),
        (["plan", 'cmd:"./mine', "--profile", "mmt"], 2, "No closing quotation"),
        (["compare", "--planners", "cmd:./a\0b"], 2, "NUL"),
        (["compare", "--planers", "madpipe"], 2, "--planers"),
        (["comparr"], 2, "did you mean 'compare'"),
        (["plan", "madpipe"], 2, "3 workloads are selected"),
        (["show", "quick"], 2, "for the suite: pipebench info quick"),
        (["show", "vgg16"], 2, "for the model: pipebench info vgg16"),
        (["show", "resnet5"], 2, "did you mean 'resnet50'"),
        (["draw", "gpip"], 2, "did you mean 'gpipe'"),
        (["draw", "gpipe", "--stages", "0"], 2, "--stages"),
        (["draw", "interleaved-1f1b", "--vpp", "1000000000"], 2, "at most 1000000 passes are drawn"),
        (["info", "madpip"], 2, "did you mean 'madpipe'"),
        (["list", "planer"], 2, "planer"),
        (["pack", "store", "-o", "store.tar"], 2, "a packed store is a zip, not 'store.tar' (end it in .zip)"),
        (["schema", "plann"], 2, "did you mean 'plan'"),
        (["show", "nowhere.json"], 2, "nowhere.json"),
        (["validate", "nowhere.json"], 2, "nowhere.json"),
    ],
)
def test_wrong_names_and_numbers(pipebench: CommandLine, arguments: list[str], code: int, expected: str) -> None:
    done = pipebench(*arguments)
    assert done.code == code
    assert expected in done.err
    assert len(done.err.strip().splitlines()) == 1
    assert done.out == ""


def test_options_that_fit_only_the_first_workload_stop_before_any_trial(
    pipebench: CommandLine, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    script = tmp_path / "mine.py"
    script.write_text(f"def plan(problem, context):\n    open({str(ran)!r}, 'w').close()\n")
    small = tmp_path / "small.txt"
    small.write_text(GRAPH)
    options = ("--profile", f"resnet50,{small}[batch=1]", "--micro-batch", "2", "--memory", "16GB")
    done = pipebench("compare", "--planners", str(script), *options)
    assert done.code == 2
    assert "small on flat: the pinned micro-batch 2 is larger than the mini-batch 1" in done.err
    assert len(done.err.strip().splitlines()) == 1
    assert done.out == ""
    assert not ran.exists()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "empty"),
        (GRAPH[:120], "line 2"),
        (GRAPH.replace("\tnode1 -- node2\n", "\tnode1 -- node9\n"), "node9"),
        (GRAPH + "\tnode2 -- node1\n", "cycle"),
        (GRAPH.replace("forward_compute_time=1.0", "forward_compute_time=-1.0"), "-1"),
        (GRAPH.replace("forward_compute_time=1.0", "forward_compute_time=nan"), "nan"),
        (GRAPH.replace("backward_compute_time=2.0, ", ""), "backward_compute_time"),
        ("\tnode1 -- node2\n", "node"),
        ('{"pipebench": "profile"', "JSON"),
        ('{"pipebench": "profile", "version": 1, "content": {}}', "name"),
        ("[1, 2", ""),
    ],
)
def test_wrong_profiles(pipebench: CommandLine, tmp_path: Path, text: str, expected: str) -> None:
    file = tmp_path / "graph.txt"
    file.write_text(text)
    options = "[batch=1]" if "node" in text else ""
    done = pipebench("compare", "--planners", "madpipe", "--profile", f"{file}{options}", "--memory", "1GB")
    assert done.code == 2
    assert "graph.txt" in done.err
    assert expected in done.err
    assert len(done.err.strip().splitlines()) == 1


@pytest.mark.parametrize(
    "text",
    [
        "name = ",
        "summary = 1\n",
        'name = "x"\nsummary = "y"\nworkload = 3\n',
        "\x00",
        "[[workloads]]\nprofile = 3",
    ],
)
def test_wrong_suites(pipebench: CommandLine, tmp_path: Path, text: str) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(text)
    done = pipebench("compare", "--planners", "madpipe", "--suite", str(file))
    assert done.code == 2
    assert "mine.toml" in done.err
    assert len(done.err.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("mine.toml", "bogus{} = 1\n", ("compare", "--planners", "uniform", "--suite")),
        ("mine.json", '{{"pipebench":"profile","version":1,"content":{{"x{}":1}}}}', ("show",)),
        ("mine.json", '{{"pipebench":"x{}","version":1,"content":{{}}}}', ("show",)),
    ],
)
def test_a_name_of_a_million_letters_is_cut_in_the_message(
    pipebench: CommandLine, tmp_path: Path, name: str, text: str, words: tuple[str, ...]
) -> None:
    file = tmp_path / name
    file.write_text(text.format("B" * 1_000_000))
    done = pipebench(*words, str(file))
    assert (done.code, len(done.err) < 2100) == (2, True)
    assert name in done.err
    assert "BB … " in done.err


@pytest.mark.parametrize(
    ("folder", "reason"),
    [
        ("plain", "is a file, not a folder for a store"),
        ("plain/below", "not a directory"),
        ("/proc/results", "no such file or directory"),
    ],
)
def test_a_folder_that_cannot_be_written_to_stops_before_any_trial(
    pipebench: CommandLine, tmp_path: Path, folder: str, reason: str
) -> None:
    ran, script = tmp_path / "ran", tmp_path / "mine.py"
    script.write_text(f"def plan(problem, context):\n    open({str(ran)!r}, 'w').close()\n")
    (tmp_path / "plain").write_text("a file")
    done = pipebench("compare", "--planners", str(script), *SMALL, "--out", str(tmp_path / folder))
    assert done.code == 2
    assert reason in done.err
    assert len(done.err.strip().splitlines()) == 1
    assert done.out == ""
    assert not ran.exists()


def test_nothing_is_half_written(pipebench: CommandLine, tmp_path: Path) -> None:
    folder = tmp_path / "not-there" / "file"
    folder.parent.write_text("a file where a folder is needed")
    done = pipebench("plan", "uniform", "--profile", "resnet50", "--devices", "2", "-o", str(folder))
    assert done.code == 2
    assert "not-there" in done.err
    assert len(done.err.strip().splitlines()) == 1
    assert not folder.exists()


Change = Callable[[dict[str, Any]], None]


def move_an_operator(content: dict[str, Any]) -> None:
    stages = content["plan"]["stages"]
    longest = max(stages[2:], key=lambda stage: len(stage["operators"]))
    stages[0]["operators"].append(longest["operators"].pop())


def twice(content: dict[str, Any]) -> None:
    stages = content["plan"]["stages"]
    stages[0]["operators"].append(stages[-1]["operators"][0])


def reverse_an_edge(content: dict[str, Any]) -> None:
    content["plan"]["order_edges"] = [[1, 0]]


def another_pin(content: dict[str, Any]) -> None:
    content["problem"]["pins"] = {"pipeline": 1}


def less_in_flight(content: dict[str, Any]) -> None:
    stage = content["plan"]["stages"][0]
    stage["in_flight"] -= stage["micro_batch"]


def one_byte_too_much(content: dict[str, Any]) -> None:
    content["problem"]["cluster"]["types"][0]["memory_bytes"] -= content["free"] + 1


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (move_an_operator, "C1"),
        (twice, "coverage"),
        (reverse_an_edge, "C2"),
        (one_byte_too_much, "memory"),
        (another_pin, "shape"),
        (less_in_flight, "shape"),
    ],
)
def test_a_plan_that_was_tampered_with_has_the_right_witness(
    pipebench: CommandLine, tmp_path: Path, change: Change, rule: str
) -> None:
    file = tmp_path / "p.json"
    options = ("--profile", "resnet50", "--devices", "4", "--memory", "12GB", "--bandwidth", "12GB/s")
    assert pipebench("plan", "madpipe", *options, "--mini-batch", "16", "-o", str(file)).code == 0
    verdict = json.loads(pipebench("validate", str(file), "--json").out)
    assert verdict["status"] == "valid"
    document = json.loads(file.read_text())
    document["content"]["free"] = 12_000_000_000 - max(verdict["peak_bytes"].values())
    change(document["content"])
    document["content"].pop("free")
    file.write_text(json.dumps(document))
    done = pipebench("validate", str(file), "--json")
    assert done.code == 1
    found = json.loads(done.out)
    assert found["status"] == "invalid"
    assert found["witness"]["rule"] == rule
    if rule == "memory":
        assert found["witness"]["bytes_over"] == 1
        assert re.search(
            r"needs [\d.]+ GB \(\d+ bytes\) .*, 1 byte more than it has$", found["witness"]["message"]
        )
    if change is another_pin:
        assert found["witness"]["message"] == "pipeline is pinned to 1, the plan has 4 device sets"
    if change is less_in_flight:
        assert "its schedule keeps" in found["witness"]["message"]
    assert pipebench("validate", str(file)).out.startswith(f"invalid: {rule}: ")


@pytest.mark.parametrize(
    ("planner", "flag"), [("madpipe", "--tp"), ("madpipe", "--dp"), ("graphpipe", "--pp"), ("piper", "--pp")]
)
def test_a_planner_that_does_not_take_a_pin_names_the_option(
    pipebench: CommandLine, planner: str, flag: str
) -> None:
    done = pipebench("compare", "--planners", planner, *SMALL, flag, "2", "--json")
    reasons = [row["reason"] for row in json.loads(done.out)["rows"]]
    assert any(f"(give {flag} 1, or leave it out)" in reason for reason in reasons)
