"""Transfers of a trace: known messages, each once, between the tasks that write and read the tensor."""

from dataclasses import dataclass

import numpy as np

from pipebench.check.precedence import overlapping
from pipebench.check.tasks import kind_codes
from pipebench.check.traced import Traced
from pipebench.costs.messages import Message
from pipebench.costs.model import CostModel
from pipebench.costs.quantise import IntArray
from pipebench.domain.plan import Plan
from pipebench.domain.schedule import BACKWARD, FORWARD
from pipebench.domain.trace import Trace
from pipebench.domain.units import exact_ns
from pipebench.domain.verdict import Rule, Witness


@dataclass(frozen=True, slots=True)
class Flow:
    """One tensor on its way between two stages, or its gradient; rows: its transfers in the trace."""

    sender: int
    receiver: int
    message: Message
    backward: bool
    rows: IntArray

    def name(self, micro_batch: int) -> str:
        """How messages call one transfer of the flow."""
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
    model: CostModel, plan: Plan, traced: Traced, trace: Trace, tolerance_ns: int
) -> Witness | None:
    """The first transfer that is unknown, repeated, or out of step with the tasks that it joins.

    Simulated traces also have every message that takes time, and none is faster than the cost model says.
    """
    rows = _rows_by_flow(trace)
    for message in model.messages(plan):
        for backward in (False, True):
            sender, receiver = message.source, message.target
            if backward:
                sender, receiver = receiver, sender
            key = BACKWARD if backward else FORWARD, sender, receiver, message.tensor
            flow = Flow(sender, receiver, message, backward, rows.pop(key, np.empty(0, dtype=np.int64)))
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
    named = ((chr(kind), source, target, tensor) for kind, source, target, tensor in keys.T.tolist())
    return dict(zip(named, groups, strict=True))


def _incomplete(model: CostModel, plan: Plan, traced: Traced, trace: Trace, flow: Flow) -> Witness | None:
    count = int(traced.tasks.counts[flow.sender])
    sent = np.array(trace.message, dtype=np.int64)[flow.rows]
    outside = (sent < 0) | (sent >= count)
    if outside.any():
        return flow.witness("shape", int(sent[np.argmax(outside)]), "carries a micro-batch that is not there")
    times = np.bincount(sent, minlength=count)
    if (times > 1).any():
        return flow.witness("coverage", int(np.argmax(times > 1)), "stands twice")
    lasted = np.array(trace.transfer_end_ns)[flow.rows] - np.array(trace.transfer_start_ns)[flow.rows]
    least = model.message_ns(plan, flow.message, backward=flow.backward) if trace.origin == "simulated" else 0
    if least > 0 and (times == 0).any():
        return flow.witness("coverage", int(np.argmax(times == 0)), f"is missing ({exact_ns(least)})")
    if (lasted < least).any():
        row = int(np.argmax(lasted < least))
        return flow.witness(
            "shape", int(sent[row]), f"lasts {exact_ns(lasted[row])}, at least {exact_ns(least)} are needed"
        )
    return None


def _out_of_step(plan: Plan, traced: Traced, trace: Trace, flow: Flow, tolerance_ns: int) -> Witness | None:
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
