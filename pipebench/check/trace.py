"""Whether a trace shows a valid run: tasks and transfers, each once, within what links and ports carry."""

from dataclasses import dataclass

import numpy as np

from pipebench.check.memory import trace_memory
from pipebench.check.periodic import link_between, read_pattern
from pipebench.check.plan import check_plan
from pipebench.check.schedule import broken_order, overlapping, waiting_stages
from pipebench.check.tasks import finite_tasks
from pipebench.check.trace_tasks import (
    TracedTasks,
    broken_precedence,
    overlap_in_lane,
    traced_as_scheduled,
    traced_periods,
    wrong_duration,
)
from pipebench.costs.links import Port, flows
from pipebench.costs.messages import Message
from pipebench.costs.model import CostModel
from pipebench.costs.placement import turns_between
from pipebench.costs.quantise import IntArray
from pipebench.costs.tasks import kind_codes
from pipebench.documents.units import exact_ns
from pipebench.domain.cluster import LinkMode
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import BACKWARD, FORWARD, TASK_KINDS, PeriodicSchedule, Schedule
from pipebench.domain.trace import Trace
from pipebench.domain.verdict import Rule, Verdict, Witness


@dataclass(frozen=True, slots=True)
class TracedFlow:
    """One tensor, or its gradient, that goes from one stage to another. rows: its transfers in the trace."""

    sender: int
    receiver: int
    message: Message
    backward: bool
    rows: IntArray

    def name(self, micro_batch: int) -> str:
        """The name of a transfer of the flow in messages."""
        kind = BACKWARD if self.backward else FORWARD
        return (
            f"the {kind} transfer of tensor {self.message.tensor}, micro-batch {micro_batch}, "
            f"from stage {self.sender} to stage {self.receiver}"
        )

    def witness(self, rule: Rule, micro_batch: int, what: str) -> Witness:
        """A witness about one transfer of the flow."""
        message = f"{self.name(micro_batch)} {what}"
        return Witness(rule=rule, message=message, stage=self.sender, micro_batch=micro_batch)


def wrong_transfer(
    model: CostModel, plan: Plan, traced: TracedTasks, trace: Trace, tolerance_ns: int
) -> Witness | None:
    """The first transfer that is unknown, repeated, or out of step with the tasks that it joins.

    A simulated trace must have every message that takes time, and no transfer may be faster than the cost model.
    """
    rows = _rows_by_flow(trace)
    for message in model.messages(plan):
        for backward in (False, True):
            sender, receiver = message.source, message.target
            if backward:
                sender, receiver = receiver, sender
            key = BACKWARD if backward else FORWARD, sender, receiver, message.tensor
            flow = TracedFlow(sender, receiver, message, backward, rows.pop(key, np.empty(0, dtype=np.int64)))
            witness = _incomplete(model, plan, traced, trace, flow) or _out_of_step(
                plan, traced, trace, flow, tolerance_ns
            )
            if witness is not None:
                return witness
    for kind, source, target, tensor in sorted(rows):
        message_text = f"nothing crosses from stage {source} to stage {target} as {kind} of tensor {tensor}"
        return Witness(rule="shape", message=message_text, stage=source)
    return None


def _rows_by_flow(trace: Trace) -> dict[tuple[str, int, int, int], IntArray]:
    if not trace.source:
        return {}
    columns = np.array([kind_codes(trace.transfer_kinds), trace.source, trace.target, trace.tensor])
    keys, which = np.unique(columns, axis=1, return_inverse=True)
    order = np.argsort(which.ravel(), kind="stable")
    groups = np.split(order, np.cumsum(np.bincount(which.ravel()))[:-1])
    named = ((TASK_KINDS[kind], source, target, tensor) for kind, source, target, tensor in keys.T.tolist())
    return dict(zip(named, groups, strict=True))


def _incomplete(
    model: CostModel, plan: Plan, traced: TracedTasks, trace: Trace, flow: TracedFlow
) -> Witness | None:
    count = int(traced.tasks.counts[flow.sender])
    sent = np.array(trace.message, dtype=np.int64)[flow.rows]
    outside = (sent < 0) | (sent >= count)
    if outside.any():
        return flow.witness("shape", int(sent[np.argmax(outside)]), "carries a micro-batch that is not there")
    times = np.bincount(sent, minlength=count)
    if (times > 1).any():
        return flow.witness("coverage", int(np.argmax(times > 1)), "stands twice")
    lasted = np.array(trace.transfer_end_ns)[flow.rows] - np.array(trace.transfer_start_ns)[flow.rows]
    if trace.origin != "simulated":
        early = lasted < 0
        needed = np.zeros(count, dtype=np.int64)
    else:
        turns = turns_between(plan.stages[flow.sender], plan.stages[flow.receiver])
        each = [model.message_ns(plan, flow.message, flow.backward, turn) for turn in range(turns)]
        needed = np.array(each, dtype=np.int64)[np.arange(count) % turns]
        early = lasted < needed[sent]
    missing = (needed > 0) & (times == 0)
    if missing.any():
        number = int(np.argmax(missing))
        return flow.witness("coverage", number, f"is missing ({exact_ns(needed[number])})")
    if early.any():
        row = int(np.argmax(early))
        least = exact_ns(needed[sent[row]])
        return flow.witness("shape", int(sent[row]), f"lasts {exact_ns(lasted[row])}, at least {least} are needed")
    return None


def _out_of_step(
    plan: Plan, traced: TracedTasks, trace: Trace, flow: TracedFlow, tolerance_ns: int
) -> Witness | None:
    tasks = traced.tasks
    table = tasks.gradient if flow.backward else tasks.forward
    sent = np.array(trace.message, dtype=np.int64)[flow.rows]
    start, end = (np.array(c)[flow.rows] for c in (trace.transfer_start_ns, trace.transfer_end_ns))
    made = traced.end_ns[table[tasks.slots_of(flow.sender, sent)]]
    early = start < made - tolerance_ns
    if early.any():
        row = int(np.argmax(early))
        what = f"starts at {exact_ns(start[row])}, what it carries is ready at {exact_ns(made[row])}"
        return flow.witness("dependency", int(sent[row]), what)
    size, other = plan.stages[flow.sender].micro_batch, plan.stages[flow.receiver].micro_batch
    if trace.origin == "measured" and other < size:
        return None  # a reader of fewer samples begins with its part of the message
    arrival = np.full(int(tasks.counts[flow.sender]), np.iinfo(np.int64).min)
    arrival[sent] = end
    first, second = overlapping(size, other, size * len(arrival))
    readers = table[tasks.slots_of(flow.receiver, second)]
    late = traced.start_ns[readers] + tolerance_ns < arrival[first]
    if late.any():
        pair = int(np.argmax(late))
        reader = int(readers[pair])
        begun = exact_ns(traced.start_ns[reader])
        what = f"ends at {exact_ns(arrival[first[pair]])}, {tasks.name(reader)} starts at {begun}"
        return flow.witness("dependency", int(first[pair]), what)
    return None


def crowded_link(plan: Plan, trace: Trace, mode: LinkMode, tolerance_ns: int) -> Witness | None:
    """The first transfer that starts while another transfer occupies its link.

    Link mode `half`: one transfer at a time for a pair of device sets.
    Link mode `full`: one transfer at a time for each direction.
    Link mode `delay`: any number.
    Stages on the same devices have no link between them.
    """
    if mode == "delay" or not trace.source:
        return None
    columns = (trace.source, trace.target, trace.message, trace.transfer_start_ns, trace.transfer_end_ns)
    source, target, message, start, end = (np.array(column, dtype=np.int64) for column in columns)
    turns = np.array([stage.turns for stage in plan.stages])
    turn = message % np.lcm(turns[source], turns[target])
    pairs, which = np.unique(np.array([source, target, turn]), axis=1, return_inverse=True)
    keys = [link_between(plan, sender, receiver, mode, at) for sender, receiver, at in pairs.T.tolist()]
    number = {key: position for position, key in enumerate(dict.fromkeys(keys))}
    link = np.array([number[key] for key in keys])[which.ravel()]
    local = np.array([sender == receiver for sender, receiver in keys])[which.ravel()]
    rows = np.flatnonzero(~local & (end > start))
    rows = rows[np.lexsort((end[rows], start[rows], link[rows]))]
    pair = first_overlap(link[rows], start[rows], end[rows], tolerance_ns)
    if pair is None:
        return None
    first, second = int(rows[pair]), int(rows[pair + 1])
    text = (
        f"the transfer from stage {source[second]} to stage {target[second]} starts at "
        f"{exact_ns(start[second])}, the link carries the one from stage {source[first]} to stage {target[first]} "
        f"until {exact_ns(end[first])}"
    )
    return Witness(
        rule="resource",
        message=text,
        stage=int(source[second]),
        micro_batch=int(trace.message[second]),
        instant_ns=int(start[second]),
    )


def first_overlap(resource: IntArray, start: IntArray, end: IntArray, tolerance_ns: int) -> int | None:
    """The first row that ends after the next row on its resource starts. rows: in order of start."""
    clash = (resource[1:] == resource[:-1]) & (start[1:] < end[:-1] - tolerance_ns)
    return int(np.argmax(clash)) if clash.any() else None


def crowded_port(model: CostModel, plan: Plan, trace: Trace, tolerance_ns: int) -> Witness | None:
    """The first transfer that starts while another transfer occupies one of its ports.

    A port is the shared way out of, or into, a group of devices. A transfer occupies each of its ports from its
    start, for the time that costs.links gives.
    """
    sent = [flow for flow in flows(model, plan) if flow.ports]
    if not sent:
        return None
    occupied = {
        (BACKWARD if flow.backward else FORWARD, flow.sender, flow.receiver, flow.tensor, flow.turn): flow.ports
        for flow in sent
    }
    turns = {(flow.sender, flow.receiver): flow.turns for flow in sent}
    number: dict[Port, int] = {}
    uses: list[tuple[int, int, int, int]] = []
    for row, key in enumerate(zip(trace.transfer_kinds, trace.source, trace.target, trace.tensor, strict=True)):
        start = trace.transfer_start_ns[row]
        turn = trace.message[row] % turns.get(key[1:3], 1)
        for port, taken in occupied.get((*key, turn), ()):
            if taken > 0:
                uses.append((number.setdefault(port, len(number)), start, start + taken, row))
    uses.sort()
    if not uses:
        return None
    port_of, start_ns, end_ns, rows = np.array(uses, dtype=np.int64).T
    pair = first_overlap(port_of, start_ns, end_ns, tolerance_ns)
    if pair is None:
        return None
    level, group, way, _ = list(number)[int(port_of[pair])]
    row = int(rows[pair + 1])
    message = (
        f"the transfer from stage {trace.source[row]} to stage {trace.target[row]} starts at "
        f"{exact_ns(start_ns[pair + 1])}, the shared way {'into' if way else 'out of'} group {group} at level "
        f"{model.problem.cluster.levels[level].name!r} is taken until {exact_ns(end_ns[pair])}"
    )
    return Witness(
        rule="resource",
        message=message,
        stage=trace.source[row],
        micro_batch=trace.message[row],
        instant_ns=int(start_ns[pair + 1]),
    )


def check_trace(
    problem: Problem, plan: Plan, schedule: Schedule, trace: Trace, *, tolerance_ns: int = 0
) -> Verdict:
    """The verdict on a trace: tasks as scheduled, one at a time, precedences, transfers, links, memory.

    Simulated traces must have the durations of the cost model and every transfer that takes time.
    Measured traces may lack transfers. Their transfers last from the call that sends to the end of the call that
    receives, so they may overlap on a link.
    tolerance_ns: how far two clocks may differ.
    The trace of a periodic schedule holds the same micro-batches 0, 1, … of every stage.
    Memory of the schedule itself is judged by `check_schedule`.
    """
    verdict = check_plan(problem, plan)
    if verdict.status != "valid":
        return verdict
    model = CostModel(problem)
    traced = _tasks_of_trace(problem, model, plan, schedule, trace)
    if isinstance(traced, Witness):
        return Verdict(status="invalid", witness=traced)
    simulated = trace.origin == "simulated"
    witness = (
        wrong_duration(model, plan, traced, simulated)
        or overlap_in_lane(traced, tolerance_ns)
        or broken_precedence(plan, traced, waiting_stages(model, plan), tolerance_ns)
        or wrong_transfer(model, plan, traced, trace, tolerance_ns)
        or (crowded_link(plan, trace, problem.cluster.link_mode, tolerance_ns) if simulated else None)
        or (crowded_port(model, plan, trace, tolerance_ns) if simulated else None)
    )
    if witness is not None:
        return Verdict(status="invalid", witness=witness)
    return trace_memory(problem, plan, trace)


def check_run(problem: Problem, plan: Plan, schedule: Schedule, trace: Trace) -> Witness | None:
    """Why a trace is none of this schedule: tasks that it lacks or repeats, or a length that they do not fit in.

    It looks at no order: on devices whose clocks disagree no clock shows that.
    """
    traced = _tasks_of_trace(problem, CostModel(problem), plan, schedule, trace)
    if isinstance(traced, Witness):
        return traced
    spanned = max(trace.end_ns, default=0) - min(trace.start_ns, default=0)
    if trace.total_ns >= spanned:
        return None
    return Witness(rule="shape", message=f"total_ns is {trace.total_ns}, its tasks take {exact_ns(spanned)}")


def _tasks_of_trace(
    problem: Problem, model: CostModel, plan: Plan, schedule: Schedule, trace: Trace
) -> TracedTasks | Witness:
    if isinstance(schedule, PeriodicSchedule):
        pattern = read_pattern(problem, model, plan, schedule)
        return pattern if isinstance(pattern, Witness) else traced_periods(plan, trace)
    tasks = finite_tasks(problem, plan, schedule)
    return broken_order(model, plan, schedule, tasks) or traced_as_scheduled(plan, tasks, trace)
