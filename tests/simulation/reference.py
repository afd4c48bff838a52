"""A slow simulator in plain Python, written from the rules and not from the kernel."""

from dataclasses import dataclass, field
from math import lcm

from pipebench.costs.model import CostModel
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import FiniteSchedule

Task = tuple[str, int, int]
Sent = tuple[int, int, int, bool, int]
"""Source and target stage, tensor, backward, the sender's micro-batch."""


@dataclass
class Transfer:
    """needs: resources with how long each is held. after: the tasks that send it, any one (a B or an I)."""

    index: int
    after: tuple[Task, ...]
    duration: int
    needs: dict[object, int] = field(default_factory=dict)


def overlap(i: int, size: int, other: int) -> range:
    """Micro-batches of `other` samples that hold samples of micro-batch i of `size` samples."""
    samples = range(i * size, (i + 1) * size)
    return range(samples[0] // other, samples[-1] // other + 1)


def transfers(problem: Problem, plan: Plan) -> dict[Sent, Transfer]:
    """Every message, numbered forward ones first."""
    model = CostModel(problem)
    cluster = problem.cluster
    samples = problem.mini_batch // plan.copies // plan.pipelines
    found: dict[Sent, Transfer] = {}
    for backward in (False, True):
        for message in model.messages(plan):
            sender, receiver = (message.target, message.source) if backward else (message.source, message.target)
            here, there = plan.stages[sender], plan.stages[receiver]
            count = samples // here.micro_batch
            repeats = lcm(here.turns, there.turns)
            for turn in range(repeats):
                from_ids, to_ids = worker(here, turn), worker(there, turn)
                duration = model.message_ns(plan, message, backward, turn)
                needs: dict[object, int] = {}
                if duration and cluster.link_mode != "delay":
                    pair = (from_ids, to_ids)
                    needs["link", pair if cluster.link_mode == "full" else tuple(sorted(pair))] = 0
                    size = (
                        model.gradient_bytes(message.tensor, here.micro_batch)
                        if backward
                        else model.tensor_bytes(message.tensor, here.micro_batch)
                    )
                    ends = (*from_ids, *to_ids)
                    below = 1
                    for number, level in enumerate(cluster.levels):
                        if level.shared_bandwidth_bytes_s is not None:
                            for way, end in (("out", from_ids), ("in", to_ids)):
                                groups = {device // below for device in end}
                                held = round(size / len(groups) / level.shared_bandwidth_bytes_s * 1e9)
                                needs.update({("port", number, way, group): held for group in groups})
                        if min(ends) // level.group == max(ends) // level.group:
                            break
                        below = level.group
                    duration = max(duration, *needs.values())
                    needs = {what: duration if what[0] == "link" else held for what, held in needs.items()}
                for i in range(turn, count, repeats):
                    after = (("B", sender, i), ("I", sender, i)) if backward else (("F", sender, i),)
                    key = (message.source, message.target, message.tensor, backward, i)
                    found[key] = Transfer(len(found), after, duration, needs)
    return found


def worker(stage: Stage, micro_batch: int) -> tuple[int, ...]:
    """The devices on which a stage runs a micro-batch."""
    if stage.replicas == "split":
        return stage.devices
    first = micro_batch % stage.data_parallel * stage.tensor_parallel
    return stage.devices[first : first + stage.tensor_parallel]


def reference(
    problem: Problem, plan: Plan, schedule: FiniteSchedule
) -> tuple[dict[Task, tuple[int, int]], dict[Sent, tuple[int, int]]]:
    """Start and end of every task and message. Raises RuntimeError when nothing can move."""
    model = CostModel(problem)
    times = [model.stage_times(stage, plan) for stage in plan.stages]
    messages = transfers(problem, plan)
    samples = problem.mini_batch // plan.copies // plan.pipelines

    def length(task: Task) -> int:
        kind, stage, _ = task
        t = times[stage]
        return {
            "F": t.forward,
            "B": t.backward,
            "I": t.backward - t.weight_gradient,
            "W": t.weight_gradient,
            "R": t.all_reduce,
        }[kind]

    tasks: dict[Task, tuple[int, int]] = {}
    moved: dict[Sent, tuple[int, int]] = {}

    def done(task: Task, now: int) -> bool:
        return task in tasks and tasks[task][1] <= now

    def may_start(task: Task, now: int) -> bool:
        kind, stage, i = task
        size = plan.stages[stage].micro_batch
        if kind == "W":
            return done(("I", stage, i), now)
        if kind == "R":
            every = [(s, j) for s in plan.mirrors(stage) for j in range(samples // size)]
            return all(done(("B", s, j), now) or done(("W", s, j), now) for s, j in every)
        backward = kind != "F"
        if backward and not done(("F", stage, i), now):
            return False
        for before, after in plan.order_edges:
            inner, outer = (before, after) if backward else (after, before)
            if inner == stage:
                for j in overlap(i, size, plan.stages[outer].micro_batch):
                    ended = [done((k, outer, j), now) for k in ("BI" if backward else "F")]
                    if not any(ended):
                        return False
        for source, target, tensor, back, j in messages:
            if back == backward and (source if backward else target) == stage:
                outer = target if backward else source
                if j in overlap(i, size, plan.stages[outer].micro_batch):
                    key = (source, target, tensor, back, j)
                    if key not in moved or moved[key][1] > now:
                        return False
        return True

    at = [0] * len(schedule.lanes)
    lane_free = [0] * len(schedule.lanes)
    held_until: dict[object, int] = {}
    now = 0
    while True:
        progress = True
        while progress:
            progress = False
            for number, lane in enumerate(schedule.lanes):
                while at[number] < len(lane.kinds) and lane_free[number] <= now:
                    p = at[number]
                    several = 2 if p in lane.together else 1
                    chosen = [(lane.kinds[q], lane.stage[q], lane.micro_batch[q]) for q in range(p, p + several)]
                    if not all(may_start(task, now) for task in chosen):
                        break
                    lengths = [length(task) for task in chosen]
                    hidden = round(problem.overlap * min(lengths)) if several == 2 else 0
                    lane_free[number] = now + sum(lengths) - hidden
                    tasks.update(dict.fromkeys(chosen, (now, lane_free[number])))
                    at[number] += several
                    progress = True
            waiting = []
            for key, transfer in messages.items():
                if key not in moved:
                    ready = [tasks[task][1] for task in transfer.after if done(task, now)]
                    if ready:
                        waiting.append((ready[0], transfer.index, key, transfer))
            for _, _, key, transfer in sorted(waiting, key=lambda entry: entry[:2]):
                if all(held_until.get(need, 0) <= now for need in transfer.needs):
                    moved[key] = (now, now + transfer.duration)
                    held_until.update({need: now + held for need, held in transfer.needs.items()})
                    progress = True
        instants = [*lane_free, *held_until.values(), *(end for _, end in moved.values())]
        later = [instant for instant in instants if instant > now]
        if not later:
            break
        now = min(later)
    if sum(at) < sum(len(lane.kinds) for lane in schedule.lanes):
        raise RuntimeError("deadlock")
    return tasks, moved
