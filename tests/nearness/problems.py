"""The problems that are looked at, by a fixed seed, and the best plan of each that is found in a time."""

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

from msgspec import structs

from pipebench.bench.best import best
from pipebench.bench.problems.workload import Workload
from pipebench.bench.problems.workload_builder import WorkloadBuilder
from pipebench.bounds import class_bound, in_class, time_bound
from pipebench.certificates.check import check
from pipebench.certificates.write import NoCertificate, certificate
from pipebench.costs.quantise import NS_PER_S
from pipebench.domain.errors import InfeasibleProblem, PipebenchError
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem, RegimeMode
from pipebench.domain.schedule import Schedule
from pipebench.hooks.manager import Host
from tests.contest.problems import MODES, Entry, entries
from tests.nearness.distances import Distance
from tests.plugins.search.test_search import context, found
from tests.plugins.search.tight import tight

STALL, STARTS = 500, 4
"""Plans without a better one after which the search on a random graph begins again, and starts in vain after which
it ends."""
SMALL = (4, 2), (4, 3)
"""Operators and devices of random graphs of which every plan is looked at, if that ends in time."""
WHOLE = "every plan was looked at"


@dataclass(frozen=True, slots=True)
class TightGraph:
    """A random graph on devices with 1.3 times the least memory (`tests.plugins.search.tight`)."""

    number: int
    mode: RegimeMode
    operators: int = 10
    devices: int = 3

    @property
    def group(self) -> str:
        return f"tight graphs, {self.operators} on {self.devices}"

    @property
    def label(self) -> str:
        return f"{self.group}: {self.number}, {self.mode}"


Each = Entry | TightGraph
FREE: dict[str, dict[str, str]] = {
    "links free": {"bandwidth": "100000GB/s"},
    "memory free": {"memory": "10000GB"},
    "both free": {"bandwidth": "100000GB/s", "memory": "10000GB"},
}
"""What a problem is given more of than any plan takes."""


def problems(cells: int, graphs: int, seed: int) -> Iterator[Each]:
    """All of `quick`, `branches` and the language models; so many graphs and cells of `chains` in both regimes.

    Of fewer cells, and of a run that ended early, those are the first of more.
    """
    every = entries()
    chains: dict[str, list[Entry]] = {}
    for entry in every["chains"]:
        chains.setdefault(entry.name, []).append(entry)
    drawn = sorted(chains)
    random.Random(seed).shuffle(drawn)
    for group in ("quick", "branches", "language models"):
        yield from every[group]
    for number in range(graphs):
        yield from (TightGraph(number, mode) for mode in MODES)
    for operators, devices in SMALL:
        yield from (
            TightGraph(number, mode, operators, devices) for number in range(graphs // 5) for mode in MODES
        )
    for name in drawn[:cells]:
        yield from chains[name]


def apart(cells: int, seed: int) -> Iterator[Entry]:
    """Each workload that `problems` has, with a flush: as it is, and with what is scarce free. Cells first."""
    sync = [each for each in problems(cells, 0, seed) if isinstance(each, Entry) and each.mode == "sync"]
    for entry in sorted(sync, key=lambda each: each.group != "chains"):
        yield entry
        for name, given in FREE.items():
            yield replace(entry, group=f"{entry.group}, {name}", spec=structs.replace(entry.spec, **given))


def distance(host: Host, each: Each, limit_s: float) -> Distance:
    """The best plan beside its bounds. limit_s: of `best`, on problems that workloads describe."""
    if isinstance(each, TightGraph):
        problem = tight(each.number, each.mode, operators=each.operators, devices=each.devices)
        known = searched(problem)
    else:
        workload = WorkloadBuilder(host).workload(each.spec)
        problem = workload.problem(each.mode)
        known = best_known(host, workload, each.mode, limit_s)
    certify_s, check_s, refused = _certified(problem, known) if known else (None, None, "")
    found = beside_bounds((each.label, each.group, each.mode), problem, known)
    return structs.replace(found, certify_s=certify_s, check_s=check_s, refused=refused)


def beside_bounds(named: tuple[str, str, str], problem: Problem, known: "Known | None") -> Distance:
    """The best plan beside both bounds, without a certificate. named: label, group and regime."""
    label, group, mode = named
    bound = time_bound(problem)
    row = class_bound(problem, bound.ns)
    return Distance(
        problem=label,
        group=group,
        mode=mode,
        best_ns=None if known is None else known.ns,
        bound_ns=bound.ns,
        bound_kind=bound.kind,
        class_bound_ns=None if row is None else row.ns,
        optimal=known is not None and known.optimal,
        in_class=known is not None and in_class(problem, known.plan, known.schedule),
    )


@dataclass(frozen=True, slots=True)
class Known:
    """A plan, what a mini-batch of it takes, and whether every other one was looked at."""

    plan: Plan
    schedule: Schedule
    ns: int
    optimal: bool


def _certified(problem: Problem, known: Known) -> tuple[float | None, float | None, str]:
    """Seconds of making a certificate, and of checking it; or why there is none."""
    began_s = time.perf_counter()
    try:
        made = certificate(problem, known.plan, known.schedule, {})
    except NoCertificate as reason:
        return None, None, str(reason)
    made_s = time.perf_counter()
    proven = check(made.data)
    assert proven.time_ns == known.ns
    return made_s - began_s, time.perf_counter() - made_s, ""


def best_known(host: Host, workload: Workload, mode: RegimeMode, limit_s: float) -> Known | None:
    """What `best` finds in a time; None where no plan fits."""
    try:
        winner = best(host, workload, mode, timeout_s=limit_s).winner
    except PipebenchError:
        return None
    assert winner.plan is not None
    assert winner.schedule is not None
    assert winner.row.simulated_s is not None
    return Known(winner.plan, winner.schedule, round(winner.row.simulated_s * NS_PER_S), optimal=False)


def searched(problem: Problem) -> Known | None:
    """What the search finds in its own time; None where no plan fits."""
    try:
        result = found(problem, context(steps=0, stall=STALL, starts=STARTS))
    except InfeasibleProblem:
        return None
    assert result.schedule is not None
    assert result.claimed_s is not None
    optimal = any(WHOLE in notice for notice in result.notices)
    return Known(result.plan, result.schedule, round(result.claimed_s * NS_PER_S), optimal)
