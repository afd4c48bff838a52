"""A certificate of a plan: its tables, its schedule as simulated, the proof of the bound; tried by the checker."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from pipebench import __version__
from pipebench.bounds import TimeBound, time_bound
from pipebench.certificates.bound_tables import bound_part
from pipebench.certificates.check import ABOUT, Proven, check
from pipebench.certificates.document import MOST_BYTES, MOST_ELEMENTS, Refused, written
from pipebench.certificates.periodic_runs import Round, round_of_orders, rounds_of_run
from pipebench.certificates.problem_premises import PINS
from pipebench.check import check_pins, check_schedule
from pipebench.costs.formula import Formula
from pipebench.costs.links import flows
from pipebench.costs.messages import Message
from pipebench.costs.model import CostModel
from pipebench.costs.quantise import whole_bytes
from pipebench.costs.sharded_stage import is_sharded
from pipebench.costs.version import MODEL_VERSION
from pipebench.domain.errors import ExitCode, PipebenchError
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import FiniteSchedule, PeriodicSchedule, Schedule
from pipebench.domain.trace import Trace
from pipebench.domain.value import digest
from pipebench.domain.verdict import Verdict
from pipebench.simulation.simulate import simulate

FINEST = 10**12
"""The largest denominator of the overlap."""


class NoCertificate(PipebenchError):
    """There is nothing to certify, or no proof of it."""

    exit_code = ExitCode.CONDITION_FAILED


@dataclass(frozen=True, slots=True)
class Certificate:
    """The bytes of a certificate, and what it proves."""

    data: bytes
    proven: Proven


class BoundParts:
    """The bounds of the latest problems, each with its part of a certificate: plans of one problem share it."""

    KEPT = 4

    def __init__(self) -> None:
        self._known: dict[tuple[str, bool], tuple[TimeBound, dict[str, Any]]] = {}

    def of(self, problem: Problem, split: bool) -> tuple[TimeBound, dict[str, Any]]:
        """split: over plans that cut operators among devices as well."""
        key = problem.problem_id, split
        if key not in self._known:
            bound = time_bound(problem, split)
            self._known[key] = bound, bound_part(problem, bound, split)
            while len(self._known) > self.KEPT:
                del self._known[next(iter(self._known))]
        return self._known[key]


def certificate(
    problem: Problem,
    plan: Plan,
    schedule: Schedule,
    about: Mapping[str, str],
    bounds: BoundParts | None = None,
) -> Certificate:
    """The certificate of a plan under a schedule, which the checker has accepted.

    about: what it says of where it comes from, by the names of `check.ABOUT`; hashes are added.
    bounds: of the plans before it.
    Raises NoCertificate for a plan that is not valid, takes no time, or has no proof.
    """
    verdict = check_schedule(problem, plan, schedule)
    for each in (verdict, check_pins(problem, plan)):
        if each.status != "valid":
            raise NoCertificate(f"the plan is {each.status}: {_why(each)}", "there is nothing to certify")
    trace = simulate(problem, plan, schedule)
    split = any(is_sharded(stage) for stage in plan.stages)
    bound, proof = (bounds or BoundParts()).of(problem, split)
    content = {
        "about": about_part(about, problem.problem_id, digest(plan), digest(schedule)),
        "problem": problem_part(problem),
        "plan": plan_part(problem, plan, schedule),
        "bound": proof,
        "claims": {
            "time_ns": time_ns(problem, plan, trace),
            "bound_ns": bound.ns,
            "peak_bytes": [list(each) for each in sorted(peak_bytes(problem, plan, verdict).items())],
            "fit": verdict.fit,
        },
    }
    reason = ""
    for part in _schedule_parts(problem, plan, schedule, trace):
        data = written({**content, "schedule": part})
        if len(data) > MOST_BYTES or data.count(b",") + data.count(b"[") + data.count(b"{") > MOST_ELEMENTS:
            raise NoCertificate(
                f"the certificate would have {len(data) / 2**20:.0f} MiB: the checker reads no such file",
                "certify a plan of fewer micro-batches or operators",
            )
        try:
            return Certificate(data, check(data))
        except Refused as refused:
            reason = reason or str(refused)
    raise NoCertificate(
        f"the checker does not accept the certificate: {reason or 'it has no period'}", _hint(schedule)
    )


def about_part(about: Mapping[str, str], problem_id: str, plan_id: str, schedule_id: str) -> dict[str, str]:
    """The part `about` of a certificate that this version makes."""
    ids = {"problem_id": problem_id, "plan_id": plan_id, "schedule_id": schedule_id}
    said = {"made_by": f"pipebench {__version__}, cost model {MODEL_VERSION}", **about, **ids}
    return {name: said.get(name, "") for name in ABOUT}


def _why(verdict: Verdict) -> str:
    return verdict.witness.message if verdict.witness else verdict.reason


def _hint(schedule: Schedule) -> str:
    if isinstance(schedule, PeriodicSchedule):
        return "where messages share a bandwidth a run may never become steady: name another scheduler"
    return "this is a defect of pipebench: please report the problem, the plan and the schedule"


def time_ns(problem: Problem, plan: Plan, trace: Trace) -> int:
    """The simulated time of a mini-batch, in ns."""
    if trace.period_ns is None:
        return trace.total_ns
    return trace.period_ns * problem.mini_batch // (plan.stages[0].micro_batch * plan.all_pipelines)


def peak_bytes(problem: Problem, plan: Plan, verdict: Verdict) -> dict[int, int]:
    """The peaks that the check found; a replica without a micro-batch holds what its stages hold at all times."""
    model = CostModel(problem)
    edges = model.messages(plan)
    idle = dict.fromkeys((device for stage in plan.stages for device in stage.devices), 0)
    for position, stage in enumerate(plan.stages):
        for device in stage.devices:
            idle[device] += model.stage_memory(plan, position, edges).held
    shift = len(idle)
    every = {device + copy * shift: held for copy in range(plan.copies) for device, held in idle.items()}
    return every | verdict.peak_bytes


def problem_part(problem: Problem) -> dict[str, Any]:
    """The part `problem` of a certificate."""
    graph, pins = problem.profile.graph, problem.pins
    overlap = Fraction(problem.overlap).limit_denominator(FINEST)
    return {
        "mini_batch": problem.mini_batch,
        "regime": problem.regime.mode,
        "link_mode": problem.cluster.link_mode,
        "overlap_numerator": overlap.numerator,
        "overlap_denominator": overlap.denominator,
        "devices": [
            [memory, whole_bytes(memory * pins.reserve)]
            for memory in (problem.cluster.type_of(device).memory_bytes for device in range(problem.cluster.size))
        ],
        "levels": [
            [level.group, int(level.shared_bandwidth_bytes_s is not None)] for level in problem.cluster.levels
        ],
        "operators": [operator.name for operator in graph.operators],
        "constants": [position for position, operator in enumerate(graph.operators) if operator.constant],
        "tensors": [
            [graph.tensors[tensor].name, graph.producers[tensor], list(graph.consumers[tensor])]
            for tensor in _made(problem)
        ],
        "pins": {**{name: getattr(pins, name) or 0 for name in PINS}, "recompute": pins.recompute or ""},
    }


def _made(problem: Problem) -> list[int]:
    """The tensors that operators make, by their positions in the graph; certificates number these alone."""
    return [tensor for tensor, producer in enumerate(problem.profile.graph.producers) if producer >= 0]


def plan_part(problem: Problem, plan: Plan, schedule: Schedule) -> dict[str, Any]:
    """The part `plan` of a certificate: stages, messages and pairs of tasks with their whole-number costs."""
    model = CostModel(problem)
    edges = model.messages(plan)
    tensor_of = {tensor: number for number, tensor in enumerate(_made(problem))}
    stages = []
    for position, stage in enumerate(plan.stages):
        memory = model.stage_memory(plan, position, edges)
        computed, joint = compute_ns(model, plan, stage)
        stages.append(
            {
                "operators": [problem.profile.graph.index[name] for name in stage.operators],
                "devices": list(stage.devices),
                "data_parallel": stage.data_parallel,
                "tensor_parallel": stage.tensor_parallel,
                "replicas": stage.replicas,
                "micro_batch": stage.micro_batch,
                "in_flight": stage.in_flight,
                "recompute": stage.recompute,
                "compute_ns": computed,
                "joint_ns": joint,
                "update_ns": model.update_ns(stage, plan),
                "memory_bytes": [memory.held, memory.per_micro_batch, memory.while_live, memory.workspace],
            }
        )
    messages = []
    for flow in flows(model, plan):
        if flow.in_place:
            continue
        ends = (flow.receiver, flow.sender) if flow.backward else (flow.sender, flow.receiver)
        alone_ns = model.message_ns(plan, Message(*ends, flow.tensor), flow.backward, flow.turn)
        ports = sorted({(copy, level, way, ns) for (level, _, way, copy), ns in flow.ports})
        key = "FB"[flow.backward], flow.sender, flow.receiver, tensor_of[flow.tensor], flow.turn
        messages.append([*key, alone_ns, [list(port) for port in ports]])
    return {
        "copies": plan.copies,
        "pipelines": plan.pipelines,
        "routing": plan.routing,
        "order_edges": [list(edge) for edge in plan.order_edges],
        "stages": stages,
        "messages": messages,
        "hidden_ns": _hidden_ns(model, plan, schedule),
    }


def compute_ns(model: CostModel, plan: Plan, stage: Stage) -> tuple[list[list[int]], list[int]]:
    """Forward, backward and weight gradient of a micro-batch: of each operator, and what the stage adds.

    Operators that are split over devices share collectives: their stage states its sums alone. Replicas that share
    out weights exchange them beside all operators: the stage adds what is longer than these.
    """
    each = [[0, 0, 0] for _ in stage.operators]
    if not is_sharded(stage):
        times = model.times_on(model.problem.cluster.devices[stage.devices[0]])
        samples, index = model.local_samples(stage), model.graph.index
        choices = stage.choice or ("",) * len(stage.operators)
        named = zip(stage.operators, choices, strict=True)
        each = [list(times.choice_ns(index[name], way, samples)) for name, way in named]
        if not model.problem.regime.shards_weights:
            return each, [0, 0, 0]
    whole = model.stage_times(stage, plan)
    backward = whole.backward - (whole.forward if stage.recompute == "stage" else 0)
    if model.problem.regime.mode == "async":
        lanes = stage.turns * plan.all_pipelines
        backward -= model.formula.update_share_ns(model.update_ns(stage, plan), stage.micro_batch, lanes)
    forwards, backwards, weights = (sum(column) for column in zip(*each, strict=True))
    # A weight gradient is at most the whole backward; the checker sees to that itself.
    return each, [whole.forward - forwards, backward - backwards, max(0, whole.weight_gradient - weights)]


def _hidden_ns(model: CostModel, plan: Plan, schedule: Schedule) -> list[list[Any]]:
    """What each kind of pair in the schedule saves: stage of the forward, other stage, its kind, ns."""
    if isinstance(schedule, PeriodicSchedule):
        return []
    pairs = {
        (lane.stage[first], lane.stage[first + 1], lane.kinds[first + 1])
        for lane in schedule.lanes
        for first in lane.together
    }
    rows: list[list[Any]] = []
    for first, other, kind in sorted(pairs):
        forward, times = (
            model.stage_times(plan.stages[first], plan).forward,
            model.stage_times(plan.stages[other], plan),
        )
        back = times.backward - (times.weight_gradient if kind == "I" else 0)
        rows.append([first, other, kind, forward + back - Formula.pair_ns(forward, back, model.problem.overlap)])
    return rows


def _schedule_parts(problem: Problem, plan: Plan, schedule: Schedule, trace: Trace) -> Iterator[dict[str, Any]]:
    """The part `schedule`: one of a finite schedule; of one without end each round that may repeat."""
    if isinstance(schedule, FiniteSchedule):
        yield _finite_part(problem, schedule, trace)
        return
    model = CostModel(problem)
    if not any(flow.ports for flow in flows(model, plan)):
        if trace.period_ns:
            yield _periodic_part(model, plan, round_of_orders(model, plan, schedule, trace.period_ns))
        return
    for each in rounds_of_run(plan, schedule, trace):
        yield _periodic_part(model, plan, each)


def _finite_part(problem: Problem, schedule: FiniteSchedule, trace: Trace) -> dict[str, Any]:
    tensor_of = {tensor: number for number, tensor in enumerate(_made(problem))}
    lanes: list[dict[str, Any]] = [
        {"devices": list(lane.devices), "tasks": [], "together": list(lane.together)} for lane in schedule.lanes
    ]
    tasks = zip(trace.kinds, trace.stage, trace.micro_batch, trace.start_ns, trace.end_ns, strict=True)
    for lane, task in zip(trace.lane, tasks, strict=True):
        lanes[lane]["tasks"].append(list(task))
    messages = zip(
        trace.transfer_kinds, trace.source, trace.target, (tensor_of[tensor] for tensor in trace.tensor),
        trace.message, trace.transfer_start_ns, trace.transfer_end_ns, strict=True,
    )  # fmt: skip
    return {"kind": "finite", "lanes": lanes, "messages": [list(message) for message in messages]}


def _periodic_part(model: CostModel, plan: Plan, laid: Round) -> dict[str, Any]:
    tensor_of = {tensor: number for number, tensor in enumerate(_made(model.problem))}
    times = [model.stage_times(stage, plan) for stage in plan.stages]
    tasks: dict[tuple[int, ...], list[list[Any]]] = {}
    for (kind, stage, number), start in laid.tasks.items():
        end = start + (times[stage].forward if kind == "F" else times[stage].backward)
        tasks.setdefault(plan.stages[stage].devices_of(number), []).append([kind, stage, number, start, end])
    for listed in tasks.values():
        listed.sort(key=lambda task: (task[3] % laid.length_ns, task[4] - task[3], task[0] == "B"))
    messages = []
    for flow in flows(model, plan):
        key = "FB"[flow.backward], flow.sender, flow.receiver
        for number in range(flow.turn, laid.size, flow.turns) if not flow.in_place else ():
            start = laid.messages[(*key, flow.tensor, number)]
            messages.append([*key, tensor_of[flow.tensor], number, start, start + flow.duration_ns])
    return {
        "kind": "periodic",
        "round": laid.size,
        "round_ns": laid.length_ns,
        "lanes": [{"devices": list(lane), "tasks": listed, "together": []} for lane, listed in tasks.items()],
        "messages": messages,
    }
