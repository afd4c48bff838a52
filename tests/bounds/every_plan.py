"""Every plan of a tiny problem and what it costs at the very least, spelt out naively."""

from collections.abc import Iterator
from itertools import product

from pipebench.check import check_pins, check_plan
from pipebench.costs.model import CostModel
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem

Groups = list[list[str]]


def partitions(names: list[str]) -> Iterator[Groups]:
    """All set partitions."""
    if not names:
        yield []
        return
    first, rest = names[0], names[1:]
    for groups in partitions(rest):
        yield [[first], *groups]
        for i, group in enumerate(groups):
            yield [*groups[:i], [first, *group], *groups[i + 1 :]]


def plans(problem: Problem, recompute: bool = False) -> Iterator[Plan]:
    """Every valid plan that honours the pins: partitions, copies, micro-batches, replicas, alternatives."""
    graph = problem.profile.graph
    size = problem.cluster.size
    kept = {op.operator: ["", *(a.id for a in op.alternatives)] for op in problem.profile.costs[0].operators}
    for groups in partitions([op.name for op in graph.operators]):
        for copies in range(1, size + 1):
            of_stage = [list(stages(problem, group, kept, size // copies, recompute)) for group in groups]
            for chosen in product(*of_stage):
                plan = placed(chosen, copies, size)
                if plan is None or check_plan(problem, plan).status != "valid":
                    continue
                if check_pins(problem, plan).status == "valid":
                    yield plan


def stages(
    problem: Problem, group: list[str], kept: dict[str, list[str]], devices: int, recompute: bool
) -> Iterator[Stage]:
    """The stage in every way; devices are numbered later."""
    for b in range(1, problem.mini_batch + 1):
        for d in range(1, devices + 1):
            for t in range(1, devices // d + 1):
                for choice in product(*(kept[name] for name in group)):
                    for again in ("none", "stage") if recompute else ("none",):
                        for in_turn in (False, True) if d > 1 else (False,):
                            yield Stage(
                                operators=tuple(group),
                                devices=tuple(range(d * t)),
                                data_parallel=d,
                                tensor_parallel=t,
                                micro_batch=b,
                                replicas="round_robin" if in_turn else "split",
                                choice=choice,
                                recompute="stage" if again == "stage" else "none",
                            )


def placed(chosen: tuple[Stage, ...], copies: int, size: int) -> Plan | None:
    """The stages on consecutive devices; None when there are too few."""
    first, found = 0, []
    for stage in chosen:
        count = len(stage.devices)
        found.append(
            Stage(
                operators=stage.operators,
                devices=tuple(range(first, first + count)),
                data_parallel=stage.data_parallel,
                tensor_parallel=stage.tensor_parallel,
                micro_batch=stage.micro_batch,
                replicas=stage.replicas,
                choice=stage.choice,
                recompute=stage.recompute,
            )
        )
        first += count
    return Plan(stages=tuple(found), copies=copies) if first * copies <= size else None


def length_ns(model: CostModel, plan: Plan) -> int:
    """Nanoseconds of one mini-batch with free transfers. async: of the busiest lane. sync: see run_through."""
    if model.problem.regime.mode == "sync":
        return run_through(model, plan)
    runs = [model.problem.mini_batch // plan.copies // stage.micro_batch for stage in plan.stages]
    times = [model.stage_times(stage, plan) for stage in plan.stages]
    turns = [stage.turns for stage in plan.stages]
    return max(-(-n * t.period // r) for n, t, r in zip(runs, times, turns, strict=True))


def run_through(model: CostModel, plan: Plan) -> int:
    """The end of the plan run with all forwards before all backwards, each as soon as it can; free transfers."""
    edges = {(m.source, m.target) for m in model.messages(plan)}
    times = [model.stage_times(stage, plan) for stage in plan.stages]
    samples = model.problem.mini_batch // plan.copies
    forward: dict[tuple[int, int], int] = {}
    backward: dict[tuple[int, int], int] = {}
    order = sorted(range(len(plan.stages)), key=lambda s: len(_ancestors(s, edges)))
    free = {(s, turn): 0 for s, stage in enumerate(plan.stages) for turn in range(stage.turns)}
    for stages_in_order, done, wait_for in ((order, forward, 0), (order[::-1], backward, 1)):
        for s in stages_in_order:
            b = plan.stages[s].micro_batch
            for m in range(samples // b):
                covered = set(range(m * b, (m + 1) * b))
                needed = [0]
                for edge in edges:
                    if edge[1 - wait_for] != s:
                        continue
                    other = edge[wait_for]
                    c = plan.stages[other].micro_batch
                    needed += [
                        end
                        for (o, n), end in done.items()
                        if o == other and covered & set(range(n * c, (n + 1) * c))
                    ]
                at = s, m % plan.stages[s].turns
                free[at] = max(free[at], *needed) + (times[s].backward if wait_for else times[s].forward)
                done[s, m] = free[at]
    ended = [max(end for (of, _), end in free.items() if of == s) for s in range(len(plan.stages))]
    return max(end + t.all_reduce for end, t in zip(ended, times, strict=True))


def _ancestors(stage: int, edges: set[tuple[int, int]]) -> set[int]:
    found: set[int] = set()
    todo = [stage]
    while todo:
        here = todo.pop()
        new = {a for a, b in edges if b == here} - found
        found |= new
        todo += new
    return found


def memory_bytes(model: CostModel, plan: Plan) -> int:
    """The fullest device with one micro-batch live in every stage."""
    edges = model.messages(plan)
    return max(model.stage_memory(plan, s, edges).peak(1) for s in range(len(plan.stages)))
