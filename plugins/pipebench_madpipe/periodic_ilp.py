"""The scheduler `periodic-ilp`: periodic scheduling as a mixed integer program (MadPipe section 4.3)."""

from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import highspy
import numpy as np
import pulp

from pipebench.costs.model import CostModel
from pipebench.costs.quantise import IntArray
from pipebench.domain.errors import InfeasibleProblem
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import PeriodicSchedule
from pipebench.hooks.context import Context
from pipebench.system.highs import solve
from pipebench_madpipe.pattern import PeriodicConstraints, PlanPattern, busiest_ns, periodic_schedule, plan_pattern
from pipebench_madpipe.pattern_search import pairs_of, tighten_order
from pipebench_madpipe.plugin import IlpOptions

TOLERANCE = 1e-9
Status = Literal["optimal", "limit", "infeasible", "unsolved"]


@dataclass(frozen=True, slots=True)
class IlpAnswer:
    """What the solver answered.

    status: as the solver proved it (`limit`: it stopped early; `unsolved`: it failed, or its answer did).
    period_ns, instants: its best order of operations, solved again in integers; -1 and none without one.
    bound_ns: the solver's lower bound on the period, within its tolerance.
    gap: the solver's relative gap on 1/T.
    """

    status: Status
    period_ns: int
    instants: IntArray
    bound_ns: float
    gap: float
    columns: int
    rows: int
    nodes: int


class _Program:
    """Variables and rows of one pattern; times in units of the busiest resource's load."""

    def __init__(self, pattern: PeriodicConstraints, unit: int) -> None:
        self.pattern, self.unit = pattern, unit
        count = len(pattern.duration)
        self.problem = pulp.LpProblem("periodic", pulp.LpMaximize)
        # With all operations in a row one micro-batch is live at a time: a longer period helps nobody.
        self.rate = pulp.LpVariable("rate", unit / max(unit, int(pattern.duration.sum())), 1)
        self.x = [pulp.LpVariable(f"x{i}", 0, 1 if i else 0) for i in range(count)]
        self.h = [pulp.LpVariable(f"h{i}", -4 * count, 4 * count, pulp.LpInteger) for i in range(count)]
        self.h[0].bounds(0, 0)
        self.y: dict[tuple[int, int], Any] = {}
        self.problem += self.rate
        for a, b, ns, periods in zip(*(column.tolist() for column in pattern[2:6]), strict=True):
            self.problem += self.x[b] + self.h[b] - self.x[a] - self.h[a] >= ns / unit * self.rate + periods
        self._resources()
        self._memory()

    def _resources(self) -> None:
        share = self.pattern.duration / self.unit
        for resource in range(int(self.pattern.resource.max(initial=-1)) + 1):
            on_it = np.flatnonzero(self.pattern.resource == resource).tolist()
            for a, b in combinations(on_it, 2):
                if self.pattern.duration[a] + self.pattern.duration[b] == 0:
                    continue
                first = pulp.LpVariable(f"y{a}_{b}", cat=pulp.LpBinary)
                self.y[a, b] = first
                self.problem += self.x[a] + float(share[a]) * self.rate <= self.x[b] + 1 - first
                self.problem += self.x[b] + float(share[b]) * self.rate <= self.x[a] + first

    def _first(self, a: int, b: int) -> Any:
        """1 when a starts before b within the period; an F and itself 1, a B and itself 0 (see live)."""
        return self.y[a, b] if a < b else 1 - self.y[b, a]

    def _memory(self) -> None:
        p = self.pattern
        for lane, event, room in zip(p.event_lane, p.event_operation.tolist(), p.event_room, strict=True):
            stages = range(int(p.lane_start[lane]), int(p.lane_start[lane + 1]))
            held: Any = 0
            for stage in stages:
                forward, backward = int(p.lane_forward[stage]), int(p.lane_backward[stage])
                share = float(p.lane_each[stage] / max(1, room))
                begun = 1 if forward == event else self._first(forward, event)
                ended = 0 if backward == event else self._first(backward, event)
                held += share * (self.h[backward] - self.h[forward] + begun - ended)
            self.problem += held <= (1 if room > 0 else 0)

    def turns(self, pairs: IntArray) -> IntArray:
        """k of each pair: whole periods that b lies behind a."""
        h = [round(v.value()) for v in self.h]
        return np.array([h[b] - h[a] - 1 + round(self.y[a, b].value()) for a, b, _ in pairs.tolist()], np.int64)


def solve_ilp(pattern: PeriodicConstraints, seconds: float, nodes: int = 0) -> IlpAnswer:
    """The pattern of shortest period by HiGHS through PuLP, one thread, within the limits (0 nodes: none)."""
    unit = busiest_ns(pattern)
    program = _Program(pattern, unit)
    limits = {"mip_max_nodes": nodes} if nodes else {}
    try:
        solve(
            program.problem,
            timeLimit=seconds,
            gapRel=0.0,
            mip_feasibility_tolerance=TOLERANCE,
            primal_feasibility_tolerance=TOLERANCE,
            **limits,
        )
    except KeyError:
        # PuLP 3.3 has no name for HiGHS's status at a limit of nodes; it has read the solution by then.
        if program.problem.solverModel.getModelStatus() not in _LIMITS:
            raise
    model = program.problem.solverModel
    info, status = model.getInfo(), model.getModelStatus()
    has_plan = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    nothing = -1, np.zeros(0, np.int64)
    period, instants = _exact(program) if has_plan else nothing
    verdict = _verdict(status, has_plan, period > 0)
    # HiGHS minimises what PuLP negates.
    rate = abs(info.mip_dual_bound)
    bound = unit / rate if 0 < rate < np.inf else float(unit)
    return IlpAnswer(
        verdict,
        period,
        instants,
        bound,
        float(info.mip_gap),
        program.problem.numVariables(),
        program.problem.numConstraints(),
        int(info.mip_node_count),
    )


def _verdict(status: Any, has_plan: bool, exact: bool) -> Status:
    if status == highspy.HighsModelStatus.kInfeasible:
        return "infeasible"
    if has_plan and not exact:
        return "unsolved"
    if status == highspy.HighsModelStatus.kOptimal:
        return "optimal"
    return "limit" if status in _LIMITS else "unsolved"


_LIMITS = (
    highspy.HighsModelStatus.kTimeLimit,
    highspy.HighsModelStatus.kIterationLimit,
    highspy.HighsModelStatus.kSolutionLimit,
    highspy.HighsModelStatus.kInterrupt,
)


def _exact(program: _Program) -> tuple[int, IntArray]:
    """Solve the solver's order again in integers and check memory exactly. -1 when it fails."""
    pattern, rate = program.pattern, program.rate.value()
    pairs = pairs_of(pattern)
    turns = program.turns(pairs)
    nothing = -1, np.zeros(0, np.int64)
    if rate <= 0 or not _fits(pattern, pairs, turns):
        return nothing
    near = round(program.unit / rate)
    for start in (near, near + 1, int(near * (1 + 1e-6)) + len(pattern.duration)):
        period, instants = tighten_order(pattern, pairs, turns, program.unit, start)
        if len(instants):
            return int(period), instants
    return nothing


def _fits(pattern: PeriodicConstraints, pairs: IntArray, turns: IntArray) -> bool:
    k = {(a, b): turn for (a, b, _), turn in zip(pairs.tolist(), turns.tolist(), strict=True)}
    k |= {(b, a): -1 - turn for (a, b), turn in k.items()}
    p = pattern
    for lane, event, room in zip(p.event_lane, p.event_operation.tolist(), p.event_room, strict=True):
        held = 0
        for stage in range(int(p.lane_start[lane]), int(p.lane_start[lane + 1])):
            forward, backward = int(p.lane_forward[stage]), int(p.lane_backward[stage])
            begun = 0 if forward == event else k[forward, event]
            ended = -1 if backward == event else k[backward, event]
            held += int(p.lane_each[stage]) * (begun - ended)
        if held > room:
            return False
    return True


def schedule(problem: Problem, plan: Plan, context: Context) -> PeriodicSchedule:
    """The schedule of shortest period whose memory fits: inside the reserve if possible, else at all.

    Counters: columns, rows and nodes of the program; `unproven` when the solver stopped at a limit. Raises
    UnsupportedProblem and InfeasibleProblem (see plan_pattern), also when the solver found none.
    """
    options = context.options
    assert isinstance(options, IlpOptions)
    model = CostModel(problem)
    for within_reserve in (True, False):
        try:
            described = plan_pattern(model, plan, within_reserve)
            answer = ilp_answer(described, options.seconds, options.nodes, context)
            return periodic_schedule(described, answer.instants, answer.period_ns)
        except InfeasibleProblem:
            if not (within_reserve and problem.pins.reserve):
                raise
    raise AssertionError("unreachable")


def ilp_answer(described: PlanPattern, seconds: float, nodes: int, context: Context) -> IlpAnswer:
    """The solver's answer, counted; raises InfeasibleProblem when it has no schedule."""
    answer = solve_ilp(described.pattern, seconds, nodes)
    for name in ("columns", "rows", "nodes"):
        context.count(name, getattr(answer, name))
    context.count("unproven", int(answer.status != "optimal"))
    if answer.period_ns > 0:
        return answer
    if answer.status == "infeasible":
        raise InfeasibleProblem(
            "the integer program of this plan has no solution: no periodic schedule fits its memory",
            "cut the stages that share a device into smaller ones, or use a smaller micro-batch",
        )
    raise InfeasibleProblem(
        f"the integer program of this plan ended without a schedule ({answer.status})",
        "give the solver more seconds or nodes, or use the scheduler periodic-bnb",
    )
