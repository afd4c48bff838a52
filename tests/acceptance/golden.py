"""Figures that the suite gives to small problems, written down with the version of the model that gave them.

`python -m tests.acceptance.golden --write` writes them anew, after costs.version.MODEL_VERSION was raised.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from pipebench.bounds import memory_bound, time_bound
from pipebench.check import check_pins, check_plan, check_schedule, check_trace
from pipebench.costs.estimate import estimate
from pipebench.costs.version import MODEL_VERSION
from pipebench.domain.cluster import Cluster, DeviceType, LinkLevel
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Pins, Problem, Regime
from pipebench.domain.profile import Alternative
from pipebench.domain.schedule import FiniteSchedule, Lane, PeriodicSchedule, Schedule
from pipebench.domain.value import digest
from pipebench.simulation.metrics import metrics
from pipebench.simulation.simulate import simulate
from tests.builders import (
    chain_problem,
    cluster,
    dag_problem,
    mirrored_plan,
    nodes,
    stages_plan,
    with_model_inputs,
)
from tests.check.orders import lane

FILE = Path(__file__).parent / "golden.json"
HOW = "python -m tests.acceptance.golden --write"
replace = msgspec.structs.replace


@dataclass(frozen=True)
class Case:
    """A plan of a problem under a schedule, all written by hand."""

    name: str
    problem: Problem
    plan: Plan
    schedule: Schedule | None = None


Figures = dict[str, dict[str, Any]]
"""Of each case, by name."""


def figures() -> Figures:
    """Every figure of every case, by name."""
    return {case.name: dict(_figures(case)) for case in cases()}


def written(path: Path = FILE) -> tuple[int, Figures]:
    """The version and the figures of a file."""
    document = msgspec.json.decode(path.read_bytes())
    return document["model_version"], document["figures"]


def write(path: Path = FILE, now: Figures | None = None) -> None:
    """Write down the figures of now."""
    document = {"model_version": MODEL_VERSION, "figures": now or figures()}
    path.write_bytes(msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n")


def complaint(path: Path = FILE, now: Figures | None = None) -> str:
    """What is wrong with the version and the figures that are written down; "" when they are those of now."""
    version, before = written(path)
    now = msgspec.json.decode(msgspec.json.encode(now or figures()))
    if version == MODEL_VERSION and before != now:
        return f"results changed: raise MODEL_VERSION and run `{HOW}`\n" + "\n".join(_changes(before, now))
    if version != MODEL_VERSION:
        return f"MODEL_VERSION is {MODEL_VERSION}, the figures written down are of {version}: run `{HOW}`"
    return ""


def _changes(before: dict[str, Any], now: dict[str, Any]) -> Iterator[str]:
    for case in sorted(before.keys() | now.keys()):
        old, new = before.get(case, {}), now.get(case, {})
        for name in sorted(old.keys() | new.keys()):
            if old.get(name) != new.get(name):
                yield f"{case}: {name}: {old.get(name)} was written down, now {new.get(name)}"


def _figures(case: Case) -> Iterator[tuple[str, Any]]:
    problem, plan = case.problem, case.plan
    for split in (False, True):
        time, memory = time_bound(problem, split), memory_bound(problem, split)
        over = "over splits" if split else "over stages"
        yield f"time bound {over}", [time.ns, time.kind, {str(name): ns for name, ns in time.parts.items()}]
        yield f"memory bound {over}", memory.value
    planned = check_plan(problem, plan)
    yield "plan", _verdict(planned)
    if planned.status != "valid":
        return
    yield "pins", check_pins(problem, plan).status
    yield "estimate", estimate(problem, plan)
    if case.schedule is None:
        return
    verdict = check_schedule(problem, plan, case.schedule)
    yield "schedule", _verdict(verdict)
    if verdict.status == "valid":
        trace = simulate(problem, plan, case.schedule)
        measured = metrics(problem, plan, trace)
        yield "simulated ns", [trace.total_ns, trace.period_ns]
        yield "simulated peaks", {str(device): size for device, size in measured.peak_memory_bytes.items()}
        yield "instants", digest([sorted(zip(trace.kinds, trace.start_ns, trace.end_ns, strict=True))])
        yield "trace", _verdict(check_trace(problem, plan, case.schedule, trace))
        yield "metrics", [round(measured.seconds * 1e12), round(measured.bubble * 1e9)]
        moves = zip(trace.transfer_kinds, trace.transfer_start_ns, trace.transfer_end_ns, strict=True)
        yield "transfers", digest([sorted(moves)])


def _verdict(verdict: Any) -> list[Any]:
    rule = verdict.witness.rule if verdict.witness else ""
    return [verdict.status, rule, verdict.fit, {str(device): size for device, size in verdict.peak_bytes.items()}]


def cases() -> list[Case]:
    """Chains, graphs, replicas, copies, alternatives, splits, recomputation, shared devices, patterns."""
    return [*_chains(), *_graphs(), *_parallel(), *_periodic(), *_refused()]


def _chain(**fields: Any) -> Problem:
    given: dict[str, Any] = {
        "activations": [7, 11, 13, 17, 0],
        "weights": [40, 60, 80, 20],
        "mode": "sync",
        "mini_batch": 8,
    }
    on = fields.pop("on", cluster(8, memory=2000, latency_s=2e-9, link_mode="full"))
    return chain_problem([5, 7, 4, 6], [9, 15, 8, 11], on, **given | fields)


def _chains() -> Iterator[Case]:
    plan, one = stages_plan([[0], [1, 2], [3]]), stages_plan([[0, 1, 2, 3]], micro_batch=2)
    yield Case("one stage", _chain(), one, gpipe(_chain(), one))
    for mode in ("full", "half", "delay"):
        problem = _chain(on=cluster(4, memory=900, bandwidth=0.5e9, latency_s=3e-9, link_mode=mode))
        yield Case(f"chain, gpipe, {mode}", problem, plan, gpipe(problem, plan))
        yield Case(f"chain, 1F1B, {mode}", problem, plan, one_f_one_b(problem, plan))
    split = _weight_gradients(_chain())
    yield Case("chain, split backwards", split, plan, gpipe(split, plan, split=True))
    mixed = Plan(
        stages=tuple(replace(stage, micro_batch=size) for stage, size in zip(plan.stages, (1, 2, 4), strict=True))
    )
    yield Case("chain, micro-batches of their own", _chain(), mixed, gpipe(_chain(), mixed))
    again = Plan(stages=tuple(replace(stage, recompute="stage") for stage in plan.stages))
    yield Case("chain, recomputed", _chain(), again, one_f_one_b(_chain(), again))
    nodes = Cluster(
        name="nodes",
        types=(DeviceType(name="gpu", memory_bytes=2000),),
        devices=("gpu",) * 4,
        levels=(
            LinkLevel(name="node", group=2, bandwidth_bytes_s=2e9, latency_s=1e-9, shared_bandwidth_bytes_s=1e9),
            LinkLevel(name="net", group=4, bandwidth_bytes_s=5e8, latency_s=5e-9, shared_bandwidth_bytes_s=5e8),
        ),
    )
    four = stages_plan([[0], [1], [2], [3]])
    wide = stages_plan([[0, 1], [2, 3]], micro_batch=4, replicas=[1, 3])
    yield Case("replicas across levels of links", _chain(on=nodes), wide, gpipe(_chain(on=nodes), wide))
    sizes = _sizes(_chain())
    for size in (1, 2, 4, 8):
        between = stages_plan([[0, 1], [2, 3]], micro_batch=size)
        yield Case(f"times between sizes, {size}", sizes, between, gpipe(sizes, between))
    yield Case("chain, levels of links", _chain(on=nodes), four, one_f_one_b(_chain(on=nodes), four))
    skipped = dag_problem(
        [5, 7, 4],
        [9, 15, 8],
        [(0, (1, 2), 8), (1, (2,), 6)],
        cluster(3, memory=900),
        weights=[10, 20, 30],
        saved=[4, 5, 6],
        mini_batch=4,
    )
    relay = replace(stages_plan([[0], [1], [2]]), routing="relay")
    yield Case("skip, relayed", skipped, relay, gpipe(skipped, relay))
    yield Case("skip, direct", skipped, replace(relay, routing="direct"), gpipe(skipped, relay))
    shared = Plan(
        stages=tuple(
            Stage(operators=(f"op{i}",), devices=(device,), micro_batch=1) for i, device in enumerate((0, 1, 0, 1))
        ),
        placement="in-turn",
    )
    yield Case("chain, shared devices", _chain(), shared, gpipe(_chain(), shared))
    vee = replace(
        shared,
        placement="v",
        stages=tuple(replace(s, devices=(d,)) for s, d in zip(shared.stages, (0, 1, 1, 0), strict=True)),
    )
    yield Case("chain, a V", _chain(), vee, gpipe(_chain(), vee))
    both_ways = chain_problem(
        [5, 7],
        [11, 13],
        cluster(2),
        activations=[0, 3, 0],
        weights=[40, 60],
        saved=[8, 9],
        mode="sync",
        mini_batch=4,
    )
    orders = (
        "F0.0 F3.0 B3.0 F0.1 +B0.0 F3.1 B3.1 B0.1 R3.0 R0.0",
        "F2.0 F1.0 B1.0 F2.1 +B2.0 F1.1 B1.1 B2.1 R1.0 R2.0",
    )
    paired = FiniteSchedule(lanes=tuple(lane((device,), order) for device, order in enumerate(orders)))
    yield Case("both ways, pairs", replace(both_ways, overlap=0.5), mirrored_plan([[0], [1]]), paired)


def _graphs() -> Iterator[Case]:
    problem = dag_problem(
        [3, 8, 5, 6, 4],
        [6, 16, 9, 13, 7],
        [(0, (1, 2), 6), (1, (3,), 5), (2, (3, 4), 9), (3, (4,), 4)],
        cluster(5, memory=700, bandwidth=0.5e9),
        weights=[10, 20, 30, 15, 5],
        saved=[6, 5, 9, 4, 2],
        mini_batch=6,
    )
    problem = with_model_inputs(problem, {"image": ((0, 2), 12)})
    plan = stages_plan([[0], [1], [2], [3, 4]])
    yield Case("branches", problem, plan, gpipe(problem, plan))
    ordered = stages_plan([[0], [1], [2], [3, 4]], order_edges=[(1, 2)])
    yield Case("branches, one after the other", problem, ordered, gpipe(problem, ordered))
    flying = stages_plan([[0], [1], [2], [3, 4]], in_flight=[6, 6, 6, 6])
    yield Case("branches, in flight", problem, flying, gpipe(problem, flying))
    for optimizer, sharding in (("adam", "none"), ("adam", "zero1"), ("adam", "zero3"), ("sgd", "none")):
        kept = replace(problem, regime=Regime(mode="sync", optimizer=optimizer, optimizer_sharding=sharding))
        wide = stages_plan([[0, 1], [2, 3, 4]], micro_batch=2, replicas=[2, 2])
        yield Case(f"branches, {optimizer}, {sharding}", kept, wide, gpipe(kept, wide))


def _parallel() -> Iterator[Case]:
    plan = stages_plan([[0, 1], [2], [3]], micro_batch=2, replicas=[2, 1, 2])
    yield Case("replicas", _chain(), plan, gpipe(_chain(), plan))
    for share in (0.0, 0.2):
        pinned = _chain(pins=Pins(micro_batch=2, reserve=share))
        yield Case(f"pinned, reserve {share}", pinned, plan, one_f_one_b(pinned, plan))
    copies = replace(stages_plan([[0, 1], [2, 3]], micro_batch=2), copies=2)
    yield Case("copies", _chain(), copies, gpipe(_chain(), copies))
    apart = _chain(on=nodes(4, 3, between=0.5e9, shared=0.5e9, memory=2000))
    yield Case("copies astride nodes", apart, copies, gpipe(apart, copies))
    ways = _alternatives(_chain())
    chosen = Plan(
        stages=(
            Stage(
                operators=("op0", "op1"),
                devices=(0, 1, 2, 3),
                data_parallel=2,
                tensor_parallel=2,
                micro_batch=2,
                choice=("tp2", "tp2"),
            ),
            Stage(operators=("op2", "op3"), devices=(4,), micro_batch=2, choice=("again", "")),
        )
    )
    yield Case("alternatives", ways, chosen, gpipe(ways, chosen))
    dims = _dims(_chain())
    for name, cut in (("batch", {"batch": 2, "n": 2}), ("out", {"n": 4}), ("both", {"k": 2, "n": 2})):
        split = Plan(
            stages=(
                Stage(
                    operators=("op0", "op1", "op2", "op3"),
                    devices=(0, 1, 2, 3),
                    tensor_parallel=4,
                    micro_batch=8,
                    sharding=(cut, {"n": 2}, cut, {"batch": 4}),
                ),
            )
        )
        yield Case(f"split operators, {name}", dims, split, gpipe(dims, split))
    halves = Plan(
        stages=tuple(
            Stage(
                operators=names,
                devices=devices,
                tensor_parallel=2,
                data_parallel=len(devices) // 2,
                micro_batch=4,
                sharding=({"n": 2}, {"batch": 2}),
            )
            for names, devices in ((("op0", "op1"), (0, 1)), (("op2", "op3"), (4, 5, 6, 7)))
        )
    )
    yield Case("split operators in two stages", dims, halves, gpipe(dims, halves))


def _periodic() -> Iterator[Case]:
    problem = chain_problem(
        [4, 6],
        [8, 10],
        cluster(2, memory=400),
        activations=[3, 2, 0],
        weights=[30, 40],
        mode="async",
        mini_batch=8,
    )
    plan = stages_plan([[0], [1]])
    pattern = PeriodicSchedule(
        period_ns=20,
        stage=(0, 1, 0, 1),
        kinds="FFBB",
        start_ns=(0, 6, 4, 12),
        shift=(0, 0, 2, 0),
        source=(0, 1),
        target=(1, 0),
        transfer_kinds="FB",
        transfer_start_ns=(4, 2),
        transfer_shift=(0, 1),
    )
    late = replace(pattern, shift=(0, 0, 0, 0))
    yield Case("pattern", problem, plan, pattern)
    yield Case("pattern, a backward before its gradient", problem, plan, late)
    longer = replace(problem, mini_batch=64)
    yield Case("pattern, for long", longer, plan, pattern)
    yield Case("pattern, slower", problem, plan, replace(pattern, period_ns=24))
    yield Case("async, in order", problem, plan, one_f_one_b(problem, plan))


def _refused() -> Iterator[Case]:
    problem, plan = _chain(on=cluster(3, memory=120)), stages_plan([[0], [1, 2], [3]])
    yield Case("does not fit", problem, plan, gpipe(problem, plan))
    turned = gpipe(_chain(), plan)
    first = turned.lanes[0]
    turned = replace(turned, lanes=(replace(first, kinds=first.kinds[::-1]), *turned.lanes[1:]))
    yield Case("backwards first", _chain(), plan, turned)
    yield Case("an operator is missing", _chain(), stages_plan([[0], [1, 2]]))
    short = stages_plan([[0], [1, 2], [3]], in_flight=[2, 2, 1])
    yield Case("more in flight than declared", _chain(), short, one_f_one_b(_chain(), short))
    wide = replace(stages_plan([[0, 1], [2, 3]], micro_batch=2, replicas=[2, 2]), copies=2)
    for degree in (2, 4):
        pinned = _chain(pins=Pins(data_parallel=degree))
        yield Case(f"copies of replicas, {degree} pinned", pinned, wide, gpipe(pinned, wide))
    yield Case("another pin", _chain(pins=Pins(micro_batch=4)), plan)


def gpipe(problem: Problem, plan: Plan, split: bool = False) -> FiniteSchedule:
    """All forwards, then all backwards, stage after stage on each lane; the all-reduces last."""

    def tasks(position: int) -> tuple[list[str], list[str]]:
        count = _count(problem, plan, position)
        back = [f"{kind}{i}" for i in reversed(range(count)) for kind in ("IW" if split else "B")]
        return [f"F{i}" for i in range(count)], back

    return _lanes(plan, {position: tasks(position) for position in range(len(plan.stages))})


def one_f_one_b(problem: Problem, plan: Plan) -> FiniteSchedule:
    """Forwards and backwards in turn after a warm-up, on a chain of stages that share no device."""
    made: dict[int, tuple[list[str], list[str]]] = {}
    for position in range(len(plan.stages)):
        count = _count(problem, plan, position)
        ahead = min(count, len(plan.stages) - position)
        order = [f"F{i}" for i in range(ahead)]
        for i in range(count):
            order += [f"B{i}", *([f"F{i + ahead}"] if i + ahead < count else [])]
        made[position] = order, []
    return _lanes(plan, made)


def _count(problem: Problem, plan: Plan, position: int) -> int:
    return problem.mini_batch // (plan.stages[position].micro_batch * plan.copies)


def _lanes(plan: Plan, tasks: dict[int, tuple[list[str], list[str]]]) -> FiniteSchedule:
    lanes = []
    for devices in dict.fromkeys(stage.devices for stage in plan.stages):
        here = [position for position, stage in enumerate(plan.stages) if stage.devices == devices]
        ordered = [(position, task) for position in here for task in tasks[position][0]]
        ordered += [(position, task) for position in reversed(here) for task in tasks[position][1]]
        if plan.copies * len(devices) > 1:
            ordered += [(position, "R0") for position in here]
        lanes.append(_lane(devices, ordered))
    return FiniteSchedule(lanes=tuple(lanes))


def _lane(devices: tuple[int, ...], tasks: Sequence[tuple[int, str]]) -> Lane:
    return Lane(
        devices=devices,
        stage=tuple(position for position, _ in tasks),
        micro_batch=tuple(int(task[1:]) for _, task in tasks),
        kinds="".join(task[0] for _, task in tasks),
    )


def _costs(problem: Problem, change: Any, **fields: Any) -> Problem:
    (costs,) = problem.profile.costs
    operators = tuple(replace(each, **change(i, each)) for i, each in enumerate(costs.operators))
    return replace(
        problem, profile=replace(problem.profile, costs=(replace(costs, operators=operators, **fields),))
    )


def _sizes(problem: Problem) -> Problem:
    """Times at three sizes that are not in proportion."""

    def times(i: int, each: Any) -> dict[str, Any]:
        return {
            name: tuple(factor * getattr(each, name)[0] for factor in (1.0, 1.7, 5.3))
            for name in ("forward_s", "backward_s")
        }

    return _costs(problem, times, micro_batches=(1, 2, 6))


def _weight_gradients(problem: Problem) -> Problem:
    return _costs(problem, lambda i, each: {"weight_gradient_s": ((2 + i) / 1e9,), "workspace_bytes": 5 + i})


def _alternatives(problem: Problem) -> Problem:
    def ways(i: int, each: Any) -> dict[str, Any]:
        half = Alternative(
            id="tp2",
            tensor_parallel=2,
            forward_s=(0.6 * each.forward_s[0],),
            backward_s=(0.6 * each.backward_s[0],),
            parameter_bytes=10 + i,
            saved_bytes_per_sample=4.0,
            fixed_bytes=3,
            collective_bytes=6.0,
        )
        again = Alternative(
            id="again",
            recompute=True,
            forward_s=each.forward_s,
            backward_s=(each.forward_s[0] + each.backward_s[0],),
            parameter_bytes=20 * (i + 1),
            saved_bytes_per_sample=1.0,
            transient_bytes_per_sample=9.0,
        )
        return {"alternatives": (half, again), "workspace_bytes": 5 + i}

    return _costs(problem, ways)


def _dims(problem: Problem) -> Problem:
    graph = problem.profile.graph
    operators = []
    for position, op in enumerate(graph.operators):
        made = [graph.tensors[tensor].name for tensor in graph.outputs[position]]
        axes = dict.fromkeys((*op.inputs, *made), ("batch", "n")) | dict.fromkeys(op.parameters, ("k", "n"))
        operators.append(replace(op, dims={"n": 4, "k": 2}, axes=axes))
    return replace(problem, profile=replace(problem.profile, graph=replace(graph, operators=tuple(operators))))


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        raise SystemExit(f"usage: {HOW}")
    write()
