"""Row: one finished trial."""

from collections.abc import Iterator
from operator import attrgetter
from typing import Literal

from pipebench.domain.limits import LONGEST_S, MOST_COUNT, MOST_FIGURE
from pipebench.domain.problem import RegimeMode
from pipebench.domain.result import Termination
from pipebench.domain.value import Value, require
from pipebench.domain.verdict import Fit, Witness

Status = Literal["ok", "infeasible", "timeout", "memory", "crashed", "invalid_plan", "unsupported", "skipped"]
FAILED: tuple[Status, ...] = ("crashed", "timeout", "memory")
"""What may end otherwise the next time; an infeasible or unsupported problem and an invalid plan do not."""


class Row(Value, frozen=True, kw_only=True):
    """All figures of one trial. A field that does not apply is None.

    workload: the suite's name for the problem, with the values of its grid; empty outside suites.
    hardware: kinds of devices with their memory, such as `V100 12 GB`; empty in rows of older stores.
    device_memory_bytes: of each device; of the smallest where they differ.
    devices, devices_used: of the cluster, and of them those of the plan. Where a device of the plan stands for
    several ranks (context parallelism), all of these; `peak_memory_bytes` has one entry for them.
    Times are seconds for one mini-batch (search times: seconds of search).
    scheduler: who ordered the plan; `own` where the order came with it. named_scheduler: the one that the user
    named, empty where the suite chose; None in rows of older stores.
    adapted: the planner plans for the other regime only; a plan of it was made for that.
    yardstick: the suite put it beside what was compared; it counts in no standing.
    coarsen: the most blocks of operators that the planner was shown; 0: it saw the operators.
    claimed_s: for an infeasible row, what the planner expected of a partition that could not be scheduled.
    bound_s: the suite's proven bound.
    gap: (value - bound) / bound, where value is the simulated time, else the estimated one.
    class_bound_s: proven for plans of a class, class_bound_scope, that the plan is of. class_bound_by: who proved
    it, `pipebench` or the planner; the larger of both. class_bound_kind: what binds, where the suite proved it.
    class_bound_recomputes: whether plans that recompute are of the class; None where a planner proved the bound.
    peak_memory_bytes: for each device; memory_bytes: the largest of them.
    measured_error: (simulated - measured) / measured; None where others disturbed the run.
    replayed_s: simulated with the measured times of tasks instead of the profile's; None as above.
    measured_memory_bytes: the most that a process of an executor held.
    depth: stages on the longest path of the stage graph.
    width: the most stages of which none waits for another.
    cut_id: hash of the operators of each stage, whatever its devices.
    planned_micro_batch: of an adapted plan the sizes that it was planned with, where it runs with others.
    own_scheduler: the planner's own scheduler, where another one is faster.
    own_scheduler_s: the time under it; None where it has no valid order for the plan.

    search_cpu_s, search_wall_s: medians of search_samples.
    search_samples: CPU seconds with children, and wall seconds, of the warm searches in order.
    search_cold_s: wall seconds of the first search.
    search_ratio: for each flavour of calibration the median of the search's CPU time over that of the calibration
    right before it.
    search_peak_bytes: resident memory of the search's process.
    elapsed_s: wall seconds of the whole trial: searches, orders tried, check and simulation. None in rows of older
    stores.
    parallel: other trials ran at the same time, so the search times cannot be compared.
    output: the end of what the planner printed.
    key: hash of everything that can change this row.
    """

    model: str
    workload: str = ""
    profile: str
    cluster: str
    hardware: str = ""
    devices: int
    device_memory_bytes: int | None = None
    mini_batch: int
    regime: RegimeMode
    problem_id: str
    workload_id: str
    planner: str
    scheduler: str = ""
    named_scheduler: str | None = None
    executor: str = ""
    fidelity: str = ""
    distribution: str = ""
    version: str = ""
    adapted: bool = False
    yardstick: bool = False
    coarsen: int = 0
    repetition: int = 0
    key: str = ""
    status: Status
    reason: str = ""
    verdict: Literal["valid", "invalid", "unknown"] | None = None
    witness: Witness | None = None
    fit: Fit | None = None
    termination: Termination | None = None
    notices: tuple[str, ...] = ()
    search_cpu_s: float | None = None
    search_wall_s: float | None = None
    search_cold_s: float | None = None
    search_samples: tuple[tuple[float, float], ...] = ()
    search_ratio: dict[str, float] = {}
    search_peak_bytes: int | None = None
    elapsed_s: float | None = None
    parallel: bool = False
    output: str = ""
    counters: dict[str, int] = {}
    claimed_s: float | None = None
    claimed_native: float | None = None
    claimed_unit: str = ""
    estimated_s: float | None = None
    simulated_s: float | None = None
    simulated_low_s: float | None = None
    simulated_high_s: float | None = None
    measured_s: float | None = None
    replayed_s: float | None = None
    bound_s: float | None = None
    bound_kind: str | None = None
    gap: float | None = None
    class_bound_s: float | None = None
    class_bound_scope: str = ""
    class_bound_kind: str | None = None
    class_bound_recomputes: bool | None = None
    class_bound_by: str = ""
    throughput: float | None = None
    measured_throughput: float | None = None
    measured_error: float | None = None
    measured_memory_bytes: int | None = None
    bubble: float | None = None
    peak_memory_bytes: dict[int, int] = {}
    memory_bytes: int | None = None
    smallest_memory_bytes: int | None = None
    bound_memory_bytes: int | None = None
    stages: int | None = None
    depth: int | None = None
    width: int | None = None
    devices_used: int | None = None
    cut_id: str | None = None
    planned_micro_batch: tuple[int, ...] = ()
    own_scheduler: str = ""
    own_scheduler_s: float | None = None
    micro_batch: tuple[int, ...] = ()
    replicas: tuple[int, ...] = ()
    in_flight: tuple[int, ...] = ()
    plan_id: str | None = None
    schedule_id: str | None = None
    environment: dict[str, str] = {}

    @property
    def place(self) -> str:
        """The devices in words: how many, and of which kind."""
        return f"{self.devices} x {self.hardware or self.cluster}"

    @property
    def subject(self) -> str:
        """What is planned: as a grid calls it; else the profile, or the model where that says more
        (mmt[branches=8], not mmt).
        """
        if "=" in self.workload:
            return self.workload
        if self.model == self.profile:
            return self.profile
        return self.model if self.model.startswith(self.profile) else f"{self.profile} of {self.model}"

    @property
    def planned_by(self) -> str:
        """The planner as tables name it."""
        name = planner_name(self.planner, self.adapted, self.coarsen)
        return f"{name} †" if self.yardstick else name

    @property
    def entered_scheduler(self) -> str:
        """The scheduler that tells entrants apart: the one that the user named. In rows of older stores, where
        that is not known, the one that ordered the plan.
        """
        return self.scheduler if self.named_scheduler is None else self.named_scheduler


def planner_name(planner: str, adapted: bool = False, coarsen: int = 0) -> str:
    """A planner as tables name it, with what tells its rows from others: `piper (32 blocks)`."""
    said = [*(["adapted"] if adapted else []), *([f"{coarsen} blocks"] if coarsen else [])]
    return f"{planner} ({', '.join(said)})" if said else planner


_TIMES = tuple(name for name in Row.__struct_fields__ if name.endswith("_s"))
_AMOUNTS = tuple(name for name in Row.__struct_fields__ if name.endswith("memory_bytes") or "throughput" in name)
_RATIOS = ("gap", "measured_error", "bubble", "claimed_native")
_COUNTS = (
    "devices",
    "mini_batch",
    "coarsen",
    "repetition",
    "stages",
    "depth",
    "width",
    "devices_used",
    "planned_micro_batch",
    "micro_batch",
    "replicas",
    "in_flight",
)
_LISTED = frozenset(("peak_memory_bytes", "planned_micro_batch", "micro_batch", "replicas", "in_flight"))
"""Fields of several figures each."""


def require_possible(row: Row) -> None:
    """What is read from a file is a row that a run can have. Raises InvalidValue that names the first figure.

    Times are not negative and at most LONGEST_S. Bytes and rates are not negative and at most MOST_FIGURE. Counts
    are not negative and at most MOST_COUNT.
    """
    if _is_possible(row):  # at once, as of a hundred thousand rows nearly all are
        return
    for name, value in _figures(row, (*_TIMES, "search_samples")):
        require(0 <= value <= LONGEST_S, f"{name} is {_short(value)}: seconds are from 0 to {LONGEST_S:g}")
    for name, value in _figures(row, (*_AMOUNTS, "search_peak_bytes", "search_ratio")):
        require(0 <= value <= MOST_FIGURE, f"{name} is {_short(value)}: it must be from 0 to {MOST_FIGURE:g}")
    for name, value in _figures(row, (*_RATIOS, "counters")):
        require(abs(value) <= MOST_FIGURE, f"{name} is {_short(value)}: it must be at most {MOST_FIGURE:g}")
    for name, value in _figures(row, _COUNTS):
        require(0 <= value <= MOST_COUNT, f"{name} is {_short(value)}: a count is from 0 to {MOST_COUNT}")


_PLAIN_TIMES, _PLAIN_AMOUNTS, _PLAIN_RATIOS, _PLAIN_COUNTS = (
    attrgetter(*(name for name in names if name not in _LISTED))
    for names in (_TIMES, (*_AMOUNTS, "search_peak_bytes"), _RATIOS, _COUNTS)
)


def _is_possible(row: Row) -> bool:
    """Whether every figure is inside its limits: what `require_possible` asks, without the names of figures."""
    for sample in row.search_samples:
        for value in sample:
            if not 0 <= value <= LONGEST_S:
                return False
    for numbers, most in (
        (_PLAIN_TIMES(row), LONGEST_S),
        (_PLAIN_AMOUNTS(row), MOST_FIGURE),
        (row.peak_memory_bytes.values(), MOST_FIGURE),
        (row.search_ratio.values(), MOST_FIGURE),
        (_PLAIN_COUNTS(row), MOST_COUNT),
        (row.planned_micro_batch, MOST_COUNT),
        (row.micro_batch, MOST_COUNT),
        (row.replicas, MOST_COUNT),
        (row.in_flight, MOST_COUNT),
    ):
        for value in numbers:
            if value is not None and not 0 <= value <= most:
                return False
    for numbers in (_PLAIN_RATIOS(row), row.counters.values()):
        for value in numbers:
            if value is not None and not -MOST_FIGURE <= value <= MOST_FIGURE:
                return False
    return True


def _short(value: float) -> str:
    """The figure as people write it; of a whole number that no float holds its first digits."""
    try:
        return f"{value:g}"
    except OverflowError:
        return f"{str(value)[:20]}…"


def _figures(row: Row, names: tuple[str, ...]) -> Iterator[tuple[str, float]]:
    """Each figure of these fields; of lists, pairs and mappings each figure inside."""
    for name in names:
        value = getattr(row, name)
        listed = list(value.values()) if isinstance(value, dict) else [value]
        while listed:
            each = listed.pop()
            if isinstance(each, tuple):
                listed += each
            elif each is not None:
                yield name, each
