"""Run the contest, or as much of it as fits in the time."""

import argparse
import time
from pathlib import Path

import msgspec

from pipebench.bench.best import best
from pipebench.bench.cage.installed import installed_host
from pipebench.bench.components import ready_planner
from pipebench.bench.machine.memory_limit import SEARCH_MEMORY_BYTES
from pipebench.bench.problems.workload import Workload
from pipebench.bench.problems.workload_builder import WorkloadBuilder
from pipebench.bench.trials.trial import Trial, run_trial
from pipebench.defaults import SEARCH_PLANNER
from pipebench.domain.errors import PipebenchError
from pipebench.hooks.manager import Host
from pipebench.hooks.syntax import Reference
from tests.contest.problems import Entry, drawn
from tests.contest.standing import Row, table


def planners_s(host: Host, workload: Workload, entry: Entry, limit_s: float) -> dict[str, float]:
    """Simulated seconds under every planner whose plan is valid; with default options, one search each."""
    found: dict[str, float] = {}
    for name in sorted(host.slot("planners")):
        if name == SEARCH_PLANNER:
            continue
        try:
            ready = ready_planner(host, Reference(name))
        except PipebenchError:
            continue
        trial = Trial(
            workload=workload,
            regime=entry.mode,
            planner=ready,
            repeat=0,
            timeout_s=limit_s,
            memory_bytes=SEARCH_MEMORY_BYTES,
            parallel=True,
        )
        row = run_trial(host, trial).row
        if row.status == "ok" and row.verdict == "valid" and row.simulated_s is not None:
            found[name] = row.simulated_s
    return found


def contested(host: Host, entry: Entry, limit_s: float, share: float) -> Row:
    """One problem: `best` first, then every planner."""
    workload = WorkloadBuilder(host).workload(entry.spec)
    mine_s, by = None, ""
    try:
        winner = best(host, workload, entry.mode, timeout_s=limit_s / share).winner.row
        mine_s, by = winner.simulated_s, winner.planner.partition("[")[0]
    except PipebenchError:
        pass
    theirs = planners_s(host, workload, entry, limit_s)
    return Row(entry.label, limit_s, limit_s / share, mine_s, by, theirs)


def main() -> None:
    """See the package."""
    asked = argparse.ArgumentParser(prog="python -m tests.contest")
    asked.add_argument("results", type=Path)
    asked.add_argument("--problems", type=int, default=30)
    asked.add_argument("--seed", type=int, default=0)
    asked.add_argument("--limit", type=float, default=300.0, help="seconds of each planner")
    asked.add_argument("--share", type=float, default=5.0, help="best has the limit divided by this")
    asked.add_argument("--for", type=float, default=float("inf"), dest="seconds", help="start none after this")
    given = asked.parse_args()
    began_s = time.monotonic()
    entries = drawn(given.problems, given.seed)
    rows: dict[str, Row] = {}
    if given.results.exists():
        for line in given.results.read_text().splitlines():
            row = msgspec.json.decode(line, type=Row)
            rows[row.problem] = row
    host = installed_host()
    for entry in entries:
        if entry.label in rows:
            continue
        if time.monotonic() - began_s > given.seconds:
            break
        row = contested(host, entry, given.limit, given.share)
        rows[entry.label] = row
        with given.results.open("a") as file:
            file.write(msgspec.json.encode(row).decode() + "\n")
        print(f"{len(rows)} of {len(entries)}: {entry.label}: {row.ratio}", flush=True)
    print(table([rows[entry.label] for entry in entries if entry.label in rows]))


if __name__ == "__main__":
    main()
