"""Inputs that once ended in exit code 70: each is one line now, with the exit code of bad input."""

import gzip
import json
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from pipebench.cli.main import run
from pipebench.documents.document import PlannedProblem, Rows, encode
from pipebench.domain.plan import Plan
from pipebench.domain.schedule import FiniteSchedule, Lane, PeriodicSchedule, Schedule
from pipebench.domain.value import digest
from tests.bench.store.made import PLAN, PROBLEM, SCHEDULE, stored
from tests.builders import chain_problem, cluster, stages_plan
from tests.cli.command_line import CommandLine, Done
from tests.fuzz.seeds import chrome_trace
from tests.fuzz.targets import FRAMEWORKS

USAGE, CONDITION_FAILED = 2, 1


def in_one_line(done: Done, expected: str, code: int = USAGE) -> None:
    assert done.code == code, done.err
    assert expected in done.err
    assert len(done.err.strip().splitlines()) == 1
    assert "internal error" not in done.err
    assert "Traceback" not in done.err


# --- traces of torch's profiler


@pytest.fixture
def store(tmp_path: Path) -> str:
    """A store with one row, whose plan and schedule are there."""
    from pipebench.bench.store import Store

    kept = stored(0, plan_id=digest(PLAN), schedule_id=digest(SCHEDULE), simulated_s=1.0)
    assert Store.open(tmp_path / "store").append(kept, PROBLEM, PLAN, SCHEDULE)
    return str(tmp_path / "store")


def attach(pipebench: CommandLine, store: str, folder: Path, first: bytes) -> Done:
    """The row beside a first rank's trace with these bytes, and a sound second one."""
    files = [folder / "rank0.json", folder / "rank1.json"]
    files[0].write_bytes(first)
    files[1].write_text(json.dumps(chrome_trace(1, 0)))
    return pipebench("attach", store, *map(str, files))


def changed_trace(change: Callable[[dict[str, Any]], None]) -> bytes:
    document = chrome_trace(0, 1)
    change(document)
    return json.dumps(document).encode()


def test_sound_traces_are_attached(pipebench: CommandLine, store: str, tmp_path: Path) -> None:
    done = attach(pipebench, store, tmp_path, json.dumps(chrome_trace(0, 1)).encode())
    assert done.code == 0, done.err


def test_a_gzipped_trace_whose_inside_is_damaged(pipebench: CommandLine, store: str, tmp_path: Path) -> None:
    data = bytearray(gzip.compress(json.dumps(chrome_trace(0, 1)).encode()))
    data[20:60] = bytes(40)
    in_one_line(attach(pipebench, store, tmp_path, bytes(data)), "rank0.json: not valid gzip")


def test_a_trace_that_is_nested_too_deep(pipebench: CommandLine, store: str, tmp_path: Path) -> None:
    data = b'{"traceEvents": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    in_one_line(attach(pipebench, store, tmp_path, data), "rank0.json: brackets are nested more than 64 deep")


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("ts", 1e308, "ts of event 'aten::mm' is inf ns"),
        ("ts", 1e300, "ts of event 'aten::mm' is 1e+303 ns"),
        ("ts", "inf", "ts of event 'aten::mm' is inf ns"),
        ("dur", "nan", "dur of event 'aten::mm' is nan ns"),
        ("dur", -5.0, "dur of event 'aten::mm' is negative"),
    ],
)
def test_a_time_that_no_clock_shows(
    pipebench: CommandLine, store: str, tmp_path: Path, key: str, value: object, expected: str
) -> None:
    def change(document: dict[str, Any]) -> None:
        next(event for event in document["traceEvents"] if event.get("name") == "aten::mm")[key] = value

    in_one_line(attach(pipebench, store, tmp_path, changed_trace(change)), expected)


def test_a_beginning_that_no_clock_shows(pipebench: CommandLine, store: str, tmp_path: Path) -> None:
    data = changed_trace(lambda document: document.update(baseTimeNanoseconds=10**30))
    in_one_line(attach(pipebench, store, tmp_path, data), "baseTimeNanoseconds is 1e+30 ns")


@pytest.mark.parametrize("arguments", [[1, 2], "text", {"Concrete Inputs": {"a": 1}}, {"Concrete Inputs": "12"}])
def test_arguments_of_an_event_in_another_shape_name_no_peer(
    pipebench: CommandLine, store: str, tmp_path: Path, arguments: object
) -> None:
    def change(document: dict[str, Any]) -> None:
        for event in document["traceEvents"]:
            if str(event.get("name")).startswith("c10d::"):
                event["args"] = arguments

    done = attach(pipebench, store, tmp_path, changed_trace(change))
    assert done.code == 0, done.err
    assert "no messages tie" in done.out or "clock" in done.out


# --- schedules of torch


@pytest.mark.parametrize("text", ["0F0,0B0\n1B0\n", "0F0,0F1,0B0,0B1\n1B0,1B1\n2F0,2F1,2B0,2B1\n"])
def test_a_torch_schedule_without_the_forwards_of_a_stage(
    pipebench: CommandLine, tmp_path: Path, text: str
) -> None:
    file = tmp_path / "x.csv"
    file.write_text(text)
    in_one_line(pipebench("validate", str(file)), "stage 1, micro-batch 0: no F", CONDITION_FAILED)


# --- plans that are not valid

FLOWING = chain_problem([3, 5], [4, 6], cluster(2), mode="async", mini_batch=2)
STAGE_9 = PeriodicSchedule(period_ns=20, stage=(0, 9), kinds="FB", start_ns=(0, 5), shift=(0, 0))
LANE_9 = FiniteSchedule(lanes=(Lane(devices=(0,), stage=(9,), micro_batch=(0,), kinds="F"),))
UNKNOWN_OPERATOR = stages_plan([[0], [7]])
FAR_DEVICE = replace(PLAN, stages=(PLAN.stages[0], replace(PLAN.stages[1], devices=(99,))))
NO_DEVICE = replace(PLAN, stages=(PLAN.stages[0], replace(PLAN.stages[1], devices=())))
NO_OPERATOR = replace(PLAN, stages=(PLAN.stages[0], replace(PLAN.stages[1], operators=())))
INVALID: dict[str, tuple[Plan, Schedule | None, str]] = {
    "an operator that is not there": (UNKNOWN_OPERATOR, SCHEDULE, "which the graph does not have"),
    "a device that is not there": (FAR_DEVICE, SCHEDULE, "uses device 99"),
    "no device": (NO_DEVICE, SCHEDULE, "has 0 devices"),
    "no operator": (NO_OPERATOR, None, "holds no operator"),
}


def plan_file(folder: Path, plan: Plan, schedule: Schedule | None) -> str:
    file = folder / "plan.json"
    problem = FLOWING if isinstance(schedule, PeriodicSchedule) else PROBLEM
    file.write_bytes(encode("plan", PlannedProblem(problem=problem, plan=plan, schedule=schedule)))
    return str(file)


@pytest.mark.parametrize("name", INVALID)
def test_an_invalid_plan_is_shown_as_far_as_it_can_be(pipebench: CommandLine, tmp_path: Path, name: str) -> None:
    plan, schedule, reason = INVALID[name]
    done = pipebench("show", plan_file(tmp_path, plan, schedule))
    assert done.code == USAGE
    assert ": invalid" in done.out
    assert reason in done.out
    assert "op0" in done.out  # its stages stand there all the same


@pytest.mark.parametrize("name", INVALID)
@pytest.mark.parametrize(
    "words",
    [
        *(("export", "FILE", "--to", framework) for framework in FRAMEWORKS),
        ("show", "FILE", "--picture", "x.svg"),
        ("show", "FILE", "--picture", "x.json"),
        ("show", "FILE", "--graph", "x.svg"),
        ("execute", "FILE", "--executor", "simulate"),
    ],
    ids=" ".join,
)
def test_nothing_is_made_of_an_invalid_plan(
    pipebench: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, words: tuple[str, ...]
) -> None:
    plan, schedule, reason = INVALID[name]
    monkeypatch.chdir(tmp_path)
    file = plan_file(tmp_path, plan, schedule)
    done = pipebench(*(file if word == "FILE" else word for word in words))
    expected = "has no schedule to draw" if schedule is None and "--picture" in words else reason
    in_one_line(done, expected)
    assert not list(tmp_path.glob("x.*"))


@pytest.mark.parametrize("schedule", [STAGE_9, LANE_9], ids=["periodic", "finite"])
def test_a_schedule_of_a_stage_that_is_not_there(
    pipebench: CommandLine, tmp_path: Path, schedule: Schedule
) -> None:
    file = plan_file(tmp_path, PLAN, schedule)
    shown = pipebench("show", file)
    assert shown.code == USAGE
    assert "op0" in shown.out
    for picture in ("x.svg", "x.json"):
        in_one_line(pipebench("show", file, "--picture", str(tmp_path / picture)), "the schedule is invalid")


def test_a_torch_schedule_beside_an_invalid_plan(pipebench: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    file.write_text("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n")
    done = pipebench("validate", str(file), "--plan", plan_file(tmp_path, NO_DEVICE, None))
    in_one_line(done, "has 0 devices")


# --- measured traces


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"stage": 7}, "the trace has tasks of stage 7, the plan has 2 stages"),
        ({"stage": -1}, "the trace has tasks of stage -1, the plan has 2 stages"),
        ({"lanes": []}, "a lane has no device"),
        ({"end_ns": 2**63}, "end_ns has an entry beyond 2^62"),
        ({"start_ns": -(10**30)}, "start_ns has an entry"),
    ],
)
def test_a_measured_trace_that_is_not_of_the_plan(
    pipebench: CommandLine, tmp_path: Path, change: dict[str, object], expected: str
) -> None:
    trace = {
        "origin": "measured",
        "lanes": [[0], [1]],
        "lane": [0, 1, 1, 0],
        "stage": [0, 1, 1, 0],
        "micro_batch": [0, 0, 0, 0],
        "kinds": "FFBB",
        "start_ns": [0, 3, 8, 14],
        "end_ns": [3, 8, 14, 18],
        "total_ns": 18,
    }
    file, plan = tmp_path / "trace.json", plan_file(tmp_path, PLAN, SCHEDULE)
    for changed in (False, True):
        for name, value in change.items() if changed else ():
            trace[name] = [value, *trace[name][1:]]  # type: ignore[index]
        file.write_text(json.dumps({"pipebench": "trace", "version": 1, "content": trace}))
        done = pipebench("show", plan, "--trace", str(file))
        assert (done.code == 0) != changed, done.err
    in_one_line(done, expected)


# --- rows that no run can have


@pytest.mark.parametrize(
    "wrong",
    [
        {"search_cpu_s": -1.0},
        {"search_samples": ((-1.0, 1.0),)},
        {"simulated_s": 1e300},
        {"estimated_s": -2.0},
        {"bound_s": -1.0},
        {"memory_bytes": -5},
        {"memory_bytes": 10**400},
        {"peak_memory_bytes": {0: -5}},
        {"counters": {"states": 2**64 - 1}},
        {"devices": 2**60},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_impossible_rows_of_a_store_are_left_out(
    pipebench: CommandLine, tmp_path: Path, wrong: dict[str, Any]
) -> None:
    from pipebench.bench.store import Store
    from pipebench.bench.store.lines import with_checksum

    folder, figures = tmp_path / "store", {"search_cpu_s": 0.5, "simulated_s": 1.0, "bound_s": 0.5}
    opened = Store.open(folder)
    assert opened.append(stored(0, **figures), PROBLEM)
    line = stored(1, **figures | wrong)
    (folder / "rows.jsonl").open("ab").write(with_checksum(_line(line)))
    (name,) = wrong
    for words in (
        ("show", str(folder)),
        ("show", str(folder), "--picture", str(tmp_path / "x.svg")),
        ("report", str(folder), "-o", str(tmp_path / "x.html")),
        ("diff", str(folder), str(folder)),
    ):
        done = pipebench(*words)
        assert done.code == 0, done.err
        assert "line 2 is damaged" in done.out + done.err
        assert name in done.out + done.err


def _line(row: Any) -> bytes:
    import msgspec

    return msgspec.json.encode(row) + b"\n"


@pytest.mark.parametrize("words", [("show", "FILE"), ("report", "FILE", "-o", "x.html"), ("diff", "FILE", "FILE")])
def test_impossible_rows_of_a_file_are_named(
    pipebench: CommandLine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = (stored(0).row, stored(1, search_cpu_s=-1821.0, simulated_s=1.0).row)
    file = tmp_path / "rows.json"
    file.write_bytes(encode("rows", Rows(rows=rows)))
    done = pipebench(*(str(file) if word == "FILE" else word for word in words))
    in_one_line(done, "rows[1]: search_cpu_s is -1821")


# --- words


def test_a_suite_that_names_a_profile_of_two_thousand_letters(pipebench: CommandLine, tmp_path: Path) -> None:
    suite = tmp_path / "suite.toml"
    suite.write_text(f'name = "x"\nsummary = "x"\n[[workloads]]\nprofile = "{"a" * 2000}"\ndevices = 2\n')
    in_one_line(pipebench("compare", "--planners", "uniform", "--suite", str(suite)), "aaaa")


LONG = "a" * 2000


@pytest.mark.parametrize(
    "words",
    [
        ("show", LONG),
        ("show", f"{LONG}.zip"),
        ("diff", LONG, LONG),
        ("report", LONG),
        ("rerun", LONG),
        ("pack", LONG, "-o", LONG),
        ("attach", LONG, LONG),
        ("validate", LONG),
        ("export", LONG, "--to", "megatron"),
        ("convert", LONG, "-o", "x.json"),
        ("plan", "uniform", "--profile", LONG),
        ("plan", "uniform", "--profile", "resnet50", "--cluster", LONG),
        ("plan", f"./{LONG}.py", "--profile", "resnet50"),
        ("plan", f"cmd:./{LONG}", "--profile", "resnet50"),
        ("compare", "--planners", "uniform", "--out", LONG),
        ("compare", "--planners", "uniform", "--html", f"{LONG}/x.html"),
        ("compare", "--planners", "uniform", "--suite", LONG),
        ("compare", "--plans", LONG, "--profile", "resnet50"),
        ("track", "check", "--history", LONG),
        ("track", "report", "--history", LONG),
    ],
    ids=lambda words: " ".join(word[:12] for word in words),
)
def test_names_of_two_thousand_letters(
    pipebench: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    done = pipebench(*words)
    assert done.code in (1, 2, 4), done.err
    in_one_line(done, "", done.code)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("verb", ["show", "diff", "validate", "report", "rerun"])
def test_a_path_with_a_nul(pipebench: CommandLine, verb: str) -> None:
    done = pipebench(verb, "a\0b", *(["c"] if verb == "diff" else []))
    in_one_line(done, "a\\x00b")


@pytest.mark.parametrize("seed", ["18446744073709551616", "9223372036854775808", "-1"])
@pytest.mark.parametrize("verb", [("plan", "pase"), ("compare", "--planners", "uniform"), ("track", "record")])
def test_seeds_beyond_what_documents_hold(pipebench: CommandLine, verb: tuple[str, ...], seed: str) -> None:
    small = () if verb[0] == "track" else ("--profile", "resnet50", "--devices", "2")
    in_one_line(pipebench(*verb, *small, "--seed", seed), "--seed")


# --- no memory


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not limit what is mapped")
@pytest.mark.parametrize("limit_kb", [300_000])
def test_a_machine_without_memory_is_told_in_one_line(tmp_path: Path, limit_kb: int) -> None:
    file = plan_file(tmp_path, PLAN, SCHEDULE)
    limit = limit_kb * 1024
    done = subprocess.run(
        [sys.executable, "-m", "pipebench", "show", file],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )
    in_one_line(Done(done.returncode, done.stdout, done.stderr), "out of memory")


def test_an_error_of_ours_is_still_an_internal_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Causes are mended where they are: nothing at the top hides what is new."""
    from pipebench.cli.commands.files import schema

    def broken(value: object) -> None:
        raise IndexError("list index out of range")

    monkeypatch.setattr(schema, "print_json", broken)
    assert run(["schema", "plan"]) == 70
    assert "internal error: IndexError" in capsys.readouterr().err
