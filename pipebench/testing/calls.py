"""What the kit asks of a component in a process of its own, and what it learns: values that cross processes."""

from typing import Literal

from pipebench.bench.searches.search import GRACE_S
from pipebench.domain.artefact import Cell
from pipebench.domain.cluster import DeviceType
from pipebench.domain.graph import OperatorGraph
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.profile import Profile
from pipebench.domain.result import PlanResult
from pipebench.domain.schedule import Schedule
from pipebench.domain.trace import Trace
from pipebench.domain.value import Value

Ending = Literal[
    "returned",
    "infeasible",
    "unsupported",
    "deadline",
    "refused",
    "unusable",
    "crashed",
    "hung",
    "died",
    "not loaded",
    "not asked",
]
"""refused: a PipebenchError of another kind. unusable: what it returned is no result of its slot."""

PATIENCE = 3
"""Times the grace: longer than that nobody waits for a turn."""
LONG_S = 120.0
"""A call without a limit of its own is killed after so long; the first may compile kernels."""
SMALL_S = 30.0
"""The same of a planner's small problems: an honest one takes a second, its kernels are compiled before."""


class Call(Value, frozen=True, kw_only=True):
    """One call. component: as on the command line, options included. name: how the kit finds the answer.

    owner: the distribution whose compiled kernels it reads.
    problem, plan, schedule, graph, data: what its slot needs. limit_s: the context's deadline from the moment of
    the call (0: it has passed), None: none. kill_worker: kill the first process that it starts. most_s: after
    which the call is killed.
    """

    name: str
    slot: str
    component: str
    owner: str = ""
    problem: Problem | None = None
    plan: Plan | None = None
    schedule: Schedule | None = None
    graph: OperatorGraph | None = None
    devices: tuple[DeviceType, ...] = ()
    micro_batches: tuple[int, ...] = ()
    data: bytes | None = None
    request: str = ""
    seed: int = 0
    limit_s: float | None = None
    kill_worker: bool = False
    most_s: float = LONG_S

    @property
    def ends_by_itself(self) -> bool:
        """Whether no deadline and no killed worker is to end it."""
        return self.limit_s is None and not self.kill_worker


class Answer(Value, frozen=True, kw_only=True):
    """How a call ended, what it gave, and what it left behind.

    reason: the error's text where there was one. advised: whether it says what to do.
    schedule: the planner's own, or its default scheduler's. counters: None where they are no counts.
    wall_s, cpu_s, compile_s: of the call, and of the compiler inside it.
    printed: what reached standard output. left: what is not as before, each in a few words.
    spent_s: CPU seconds of its process until then, children that were waited for included.
    replaced: functions of clocks and suite that are no longer the originals. written: files that it wrote and that
    are not its own or are still there. reached: addresses that it connected to. unreaped: children that ended and
    were not waited for.
    workers: processes that it started, as seen while it ran. undeclared: names that it asked its context for and
    does not declare to call. flaws: of an artefact. cells: what an artefact runs, the small part of it.
    """

    name: str
    ending: Ending
    reason: str = ""
    advised: bool = False
    result: PlanResult | None = None
    schedule: Schedule | None = None
    own_schedule: bool = False
    trace: Trace | None = None
    profile: Profile | None = None
    graph: OperatorGraph | None = None
    counters: dict[str, int] | None = None
    counters_wrong: str = ""
    wall_s: float = 0.0
    cpu_s: float = 0.0
    compile_s: float = 0.0
    spent_s: float = 0.0
    replaced: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    reached: tuple[str, ...] = ()
    unreaped: int = 0
    printed: str = ""
    left: tuple[str, ...] = ()
    workers: int = 0
    undeclared: tuple[str, ...] = ()
    flaws: tuple[str, ...] = ()
    cells: tuple[Cell, ...] = ()

    def late_s(self, limit_s: float) -> float:
        """How long after a limit and the host's grace it ended; 0 for in time.

        On a busy machine a call waits for its turn: up to PATIENCE times the grace, CPU time decides.
        """
        wall_s, cpu_s = self.wall_s - self.compile_s, self.cpu_s - self.compile_s
        over_s = wall_s - limit_s - GRACE_S
        busy = cpu_s <= limit_s + GRACE_S and over_s <= PATIENCE * GRACE_S
        return 0.0 if busy else max(0.0, over_s)
