"""Tiny problems by number, and the fastest of all their plans in any order that the suite's schedulers make."""

import random
from collections.abc import Iterator
from itertools import product
from typing import Literal

from msgspec.structs import replace

from pipebench.bench.ordering.schedulers import tried_schedulers
from pipebench.bench.score import judge
from pipebench.check import check_plan
from pipebench.costs.formula import StageTimes
from pipebench.costs.model import CostModel
from pipebench.domain.errors import PipebenchError
from pipebench.domain.placement import placement_kind_of
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Pins, Problem, RegimeMode
from pipebench.simulation.metrics import metrics
from pipebench.simulation.simulate import simulate
from tests.bounds.every_plan import partitions
from tests.builders import cluster, dag_problem
from tests.plugins.running import services

NS = 1e9


Kind = Literal["chain or branches", "chain", "series-parallel", "dag"]
KINDS: tuple[Kind, ...] = ("chain", "series-parallel", "dag")


def tiny(number: int, mode: RegimeMode, pins: Pins | None = None, kind: Kind = "chain or branches") -> Problem:
    """Three or four operators, two or three devices, often tight memory."""
    drawn = random.Random(number)
    count, devices = drawn.choice([(3, 2), (3, 3), (4, 2)])
    tensors = [(at, (at + 1,), drawn.randint(0, 6)) for at in range(count - 1)]
    if (kind == "chain or branches" and drawn.random() < 0.4) or kind == "series-parallel":
        tensors = [(0, (1, 2), drawn.randint(0, 6))]
        tensors += [(at, (3,), drawn.randint(0, 6)) for at in (1, 2) if count == 4]
    elif kind == "dag":
        readers = [[b for b in range(a + 1, count) if drawn.random() < 0.6] for a in range(count)]
        tensors = [(a, tuple(read), drawn.randint(0, 6)) for a, read in enumerate(readers) if read]
    memory = drawn.choice([10**15, drawn.randint(60, 160)])
    return dag_problem(
        [drawn.randint(0, 20) for _ in range(count)],
        [drawn.randint(1, 30) for _ in range(count)],
        tensors,
        cluster(devices, memory=memory, link_mode=drawn.choice(["half", "full", "delay"])),
        weights=[drawn.randint(0, 12) for _ in range(count)],
        saved=[drawn.randint(0, 12) for _ in range(count)],
        mode=mode,
        mini_batch=drawn.choice([2, 4]),
        micro_batches=(1, 2, 4),
        pins=pins,
    )


def all_plans(problem: Problem) -> Iterator[Plan]:
    """Every division into stages on groups of devices, with micro-batches, modes, recomputation and copies.

    In async replicas in turn may be more than a mini-batch has micro-batches: they go on with those of the next.
    """
    names = [operator.name for operator in problem.profile.graph.operators]
    count, sync = problem.cluster.size, problem.regime.mode == "sync"
    for groups in partitions(names):
        for homes in product(range(len(groups)), repeat=len(groups)):
            if any(home not in homes[:at] and home != len(set(homes[:at])) for at, home in enumerate(homes)):
                continue  # groups are numbered by their first stage
            for sizes in product(range(1, count + 1), repeat=max(homes) + 1):
                for copies in range(1, count // sum(sizes) + 1) if sum(sizes) <= count else ():
                    yield from _plans(problem, groups, homes, sizes, copies, sync)


def _plans(
    problem: Problem,
    groups: list[list[str]],
    homes: tuple[int, ...],
    sizes: tuple[int, ...],
    copies: int,
    sync: bool,
) -> Iterator[Plan]:
    if problem.mini_batch % copies:
        return
    samples = problem.mini_batch // copies
    starts = [sum(sizes[:at]) for at in range(len(sizes))]
    offered = [b for b in (1, 2, 4) if samples % b == 0]
    several = product(offered, repeat=len(groups)) if sync else ((b,) * len(groups) for b in offered)
    for batch in several:
        modes = [
            ("split", "round_robin") if 1 < sizes[home] <= (samples // b if sync else sizes[home]) else ("split",)
            for home, b in zip(homes, batch, strict=True)
        ]
        for mode in product(*modes):
            for again in product(("none", "stage"), repeat=len(groups)):
                stages = tuple(
                    Stage(
                        operators=tuple(group),
                        devices=tuple(range(starts[home], starts[home] + sizes[home])),
                        data_parallel=sizes[home],
                        micro_batch=b,
                        replicas=replicas,  # type: ignore[arg-type]
                        recompute=recompute,  # type: ignore[arg-type]
                    )
                    for group, home, b, replicas, recompute in zip(groups, homes, batch, mode, again, strict=True)
                )
                kind = placement_kind_of([stage.devices for stage in stages])
                yield Plan(stages=stages, copies=copies, placement=kind)


def busiest_ns(model: CostModel, plan: Plan) -> int:
    """What the busiest device computes in a mini-batch; no order takes less."""
    load: dict[int, int] = {}
    for stage in plan.stages:
        runs = model.problem.mini_batch // plan.copies // stage.micro_batch
        for devices in stage.device_sets:
            busy = runs * model.stage_times(stage, plan).period // stage.turns
            for device in devices:
                load[device] = load.get(device, 0) + busy
    return max(load.values())


def path_ns(model: CostModel, plan: Plan) -> int:
    """What no order takes less than in sync: the first micro-batch on its way to a stage, all of them there, the
    last on its way back.
    """
    after: dict[int, set[int]] = {at: set() for at in range(len(plan.stages))}
    for message in model.messages(plan):
        after[message.source].add(message.target)
    times = [model.stage_times(stage, plan) for stage in plan.stages]
    crossed = [0] * len(times)
    for _ in times:
        for at, behind in after.items():
            for other in behind:
                there_and_back = times[at].forward + times[at].backward - times[at].weight_gradient
                crossed[other] = max(crossed[other], crossed[at] + there_and_back)
    found = []
    for stage, time, waited in zip(plan.stages, times, crossed, strict=True):
        runs = -(-(model.problem.mini_batch // plan.copies // stage.micro_batch) // stage.turns)
        found.append(waited + runs * (time.period - time.weight_gradient))
    return max(found)


class KeptCosts(CostModel):
    """The cost model; it works out the times of a stage once."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self._kept: dict[tuple[Stage, int, int], StageTimes] = {}

    def stage_times(self, stage: Stage, plan: Plan | None = None) -> StageTimes:
        assert plan is not None
        key = stage, plan.copies, plan.devices_used
        if key not in self._kept:
            self._kept[key] = super().stage_times(stage, plan)
        return self._kept[key]


def order_ns(problem: Problem, plan: Plan, below: int) -> int:
    """The shortest mini-batch in any order, if it is below; else `below`.

    Of the suite's schedulers; in sync of branch and bound too, which has a brute force of its own to answer to.
    """
    exact = ["finite-bnb"] if problem.regime.mode == "sync" else []
    for name in [*tried_schedulers(services().host, problem.regime.mode), *exact]:
        try:
            schedule = services().schedule(name, problem, plan)
            trace = simulate(problem, plan, schedule)
        except PipebenchError:
            continue
        ns = round(metrics(problem, plan, trace).seconds * NS)
        if ns < below and judge(problem, plan, schedule).status == "valid":
            below = ns
    return below


def optimum_ns(problem: Problem, below: int) -> int:
    """The shortest mini-batch of all plans, if it is below; else `below`."""
    model = KeptCosts(problem)
    for plan in all_plans(problem):
        try:
            if busiest_ns(model, plan) >= below or check_plan(problem, plan).status == "invalid":
                continue
            if problem.regime.mode == "async" or path_ns(model, plan) < below:
                below = order_ns(problem, plan, below)
        except PipebenchError:
            continue
    return below


def with_memory(problem: Problem, memory_bytes: int) -> Problem:
    """The same on devices of so much memory."""
    types = tuple(replace(kind, memory_bytes=memory_bytes) for kind in problem.cluster.types)
    return replace(problem, cluster=replace(problem.cluster, types=types))
