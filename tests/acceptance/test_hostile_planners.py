"""Strangers that misbehave stand in one comparison with two honest planners and harm nobody."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.hostile import NAMES, install_hostile

HONEST = ("data-parallel", "uniform")
WORKLOAD = ("--profile", "resnet50", "--devices", "2", "--memory", "16GB", "--mini-batch", "16")
QUALITY = ("status", "plan_id", "schedule_id", "simulated_s", "estimated_s", "bound_s", "memory_bytes", "counters")
STATUS = {
    "allocates": "memory",
    "exits": "crashed",
    "grandchild": "crashed",
    "hangs": "timeout",
    "invalid": "invalid_plan",
    "nothing": "crashed",
    "prints": "timeout",
    "raises": "crashed",
}


def compare(folder: Path, planners: tuple[str, ...]) -> "subprocess.CompletedProcess[str]":
    limits = (
        "--timeout",
        "3",
        "--search-memory",
        "400MB",
        "--json",
        "--regime",
        "sync",
        "--out",
        str(folder / "store"),
    )
    command = [sys.executable, "-m", "pipebench", "compare", "--planners", ",".join(planners), *WORKLOAD, *limits]
    path = [str(folder), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(part for part in path if part)}
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment, check=False)


def rows(out: str) -> dict[str, dict[str, Any]]:
    return {row["planner"]: row for row in json.loads(out)["rows"]}


@pytest.mark.nightly
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="only Linux hands orphans to the fork server")
def test_eight_hostile_planners_cost_their_own_rows_only(tmp_path: Path) -> None:
    install_hostile(tmp_path)
    alone = tmp_path / "alone"
    alone.mkdir()
    quiet = rows(compare(alone, HONEST).stdout)
    done = compare(tmp_path, (HONEST[0], *NAMES, HONEST[1]))
    assert done.returncode == 5, done.stderr
    found = rows(done.stdout)
    assert {name: found[name]["status"] for name in NAMES} == STATUS
    assert all(found[name]["reason"] and "\n" not in found[name]["reason"] for name in NAMES)
    for name in HONEST:
        assert {key: found[name][key] for key in QUALITY} == {key: quiet[name][key] for key in QUALITY}
    stored = (tmp_path / "store" / "rows.jsonl").read_text().splitlines()
    assert sorted(json.loads(line)["row"]["planner"] for line in stored) == sorted((*HONEST, *NAMES))
    assert left_behind() == []


def left_behind() -> list[str]:
    """Command lines of processes that a hostile planner or its fork server would be."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode() if entry.name.isdigit() else ""
        except OSError:
            continue
        found += [line] if "sleep 4711" in line else []
    return found
