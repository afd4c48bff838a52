"""Programs as planners on the command line: what reaches them, what of theirs reaches the row."""

import json
import sys
from pathlib import Path

import pytest

from pipebench.domain.row import Row
from tests.cli.command_line import CommandLine

SMALL = ("--profile", "resnet50", "--devices", "2", "--memory", "16GB", "--mini-batch", "4", "--regime", "sync")
PROGRAM = """
import json, os, sys
problem = json.load(sys.stdin)["content"]
names = [operator["name"] for operator in problem["profile"]["graph"]["operators"]]
stage = {"operators": names, "devices": [0], "micro_batch": 1}
result = {"plan": {"stages": [stage]}}
said = {name: value for name, value in os.environ.items() if name.startswith("PIPEBENCH_")}
"""
SCHEDULE = """
result["schedule"] = {"type": "finite", "lanes": [
    {"devices": [0], "stage": [0] * 8, "micro_batch": [0, 0, 1, 1, 2, 2, 3, 3], "kinds": "FB" * 4}
]}
"""
WRITE = """
json.dump({"pipebench": "result", "version": 1, "content": result}, sys.stdout)
"""


def compared(pipebench: CommandLine, folder: Path, code: str, *more: str, options: str = "") -> Row:
    """The row of a program that runs this code before it writes its result."""
    (folder / "program.py").write_text(PROGRAM + code + WRITE)
    command = f"cmd:{sys.executable} {folder / 'program.py'}{options}"
    done = pipebench("compare", "--planners", command, *SMALL, "--json", *more)
    (row,) = json.loads(done.out)["rows"]
    assert row["planner"] == command
    assert (done.code == 0) == (row["status"] == "ok")
    return Row(**{name: row[name] for name in Row.__struct_fields__ if name in row})


def test_what_a_program_returns_is_in_its_row(pipebench: CommandLine, tmp_path: Path) -> None:
    code = (
        SCHEDULE
        + """
result |= {"scheduler": "one by one", "claimed_s": 2.5, "claimed_native": 7, "claimed_unit": "cycles"}
result |= {"lower_bound_s": 0.12, "bound_scope": "one device", "termination": "limit"}
result |= {"notices": ["stopped early"], "counters": {"cuts": 12}}
print("tried 12 cuts", file=sys.stderr)
"""
    )
    row = compared(pipebench, tmp_path, code)
    assert (row.status, row.scheduler) == ("ok", "one by one")
    assert (row.claimed_s, row.claimed_native, row.claimed_unit) == (2.5, 7, "cycles")
    assert (row.class_bound_s, row.class_bound_scope, row.termination) == (0.12, "one device", "limit")
    assert row.counters == {"cuts": 12}
    assert "stopped early" in row.notices
    assert "tried 12 cuts" in row.output


def test_what_the_user_asks_for_reaches_the_program(pipebench: CommandLine, tmp_path: Path) -> None:
    code = 'result["notices"] = [json.dumps(said)]\n'
    more = ("--seed", "5", "--timeout", "40", "--schedulers", "gpipe")
    row = compared(pipebench, tmp_path, code, *more, options="[depth=3,name=x y]")
    told = next(json.loads(notice) for notice in row.notices if notice.startswith("{"))
    assert json.loads(told["PIPEBENCH_OPTIONS"]) == {"depth": "3", "name": "x y"}
    assert (told["PIPEBENCH_SEED"], told["PIPEBENCH_DEVICES"], told["PIPEBENCH_THREADS"]) == ("5", "2", "1")
    assert 0 < float(told["PIPEBENCH_DEADLINE_S"]) <= 40
    assert told["PIPEBENCH_SCHEDULER"] == "gpipe"
    assert json.loads(told["PIPEBENCH_PLACEMENTS"]) == ["apart"]


def test_options_are_part_of_what_a_store_keeps(pipebench: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM + WRITE)
    for options, cached in (("", 0), ("[depth=3]", 0), ("[depth=4]", 0), ("[depth=3]", 1), ("", 1)):
        command = f"cmd:{sys.executable} {tmp_path / 'program.py'}{options}"
        store = ("--out", str(tmp_path / "store"))
        done = pipebench("compare", "--planners", command, *SMALL, "--json", *store)
        assert len(json.loads(done.out)["cached"]) == cached, options


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ('result["claimed_s"] = "fast"', "at $.content.claimed_s: Expected `float | null`, got `str`"),
        ('result["counters"] = {"cuts": -1}', "counter 'cuts' is -1, a count is not negative"),
        ('stage["micro_batch"] = "8"', "at $.content.plan.stages[0].micro_batch: Expected `int`, got `str`"),
        ('result["lower_bound"] = 1', "Object contains unknown field `lower_bound`"),
    ],
)
def test_output_that_is_wrong_costs_the_row(
    pipebench: CommandLine, tmp_path: Path, code: str, reason: str
) -> None:
    row = compared(pipebench, tmp_path, code)
    assert row.status == "crashed"
    assert reason in row.reason


def test_a_schedule_that_is_wrong_costs_the_row(pipebench: CommandLine, tmp_path: Path) -> None:
    row = compared(pipebench, tmp_path, SCHEDULE.replace('"FB" * 4', '"BF" * 4'))
    assert row.status == "invalid_plan"
