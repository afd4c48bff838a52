"""Orders of many tasks in few lanes, against the rules told task by task: what is live, and how far lanes come."""

from random import Random

import numpy as np
import pytest

from pipebench.check import check_schedule
from pipebench.check.memory import lane_peak
from pipebench.check.schedule import deadlock, waiting_stages, waits
from pipebench.check.tasks import IndexedTasks, finite_tasks
from pipebench.costs.formula import Memory, StageMemory
from pipebench.costs.model import CostModel
from pipebench.costs.tasks import B, F, R, W
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import FiniteSchedule
from tests.builders import chain_problem, cluster
from tests.check.orders import lane

MICRO_BATCHES = 6


def shared_plan() -> Plan:
    """Six stages of one operator in turn on two devices."""
    stages = (Stage(operators=(f"op{at}",), devices=(at % 2,), micro_batch=1) for at in range(6))
    return Plan(stages=tuple(stages), placement="in-turn")


def drawn_orders(draw: Random, honest: bool, split: bool, pairs: bool) -> list[str]:
    """The tasks of both devices, each behind what it needs in its own stage; honest: and in those beside it."""
    kinds = {m: "FIW" if split and m % 2 else "FB" for m in range(MICRO_BATCHES)}
    left = {(stage, m): kinds[m] for stage in range(6) for m in range(MICRO_BATCHES)}
    orders: tuple[list[str], list[str]] = ([], [])
    while any(left.values()):
        ready = [
            (stage, m)
            for (stage, m), rest in left.items()
            if rest
            and not (honest and rest[0] == "F" and stage and left[stage - 1, m] == kinds[m])
            and not (honest and rest[0] in "BI" and stage < 5 and left[stage + 1, m] not in ("", "W"))
        ]
        stage, m = draw.choice(ready)
        kind, left[stage, m] = left[stage, m][0], left[stage, m][1:]
        order = orders[stage % 2]
        last = order[-1] if order else ""
        together = pairs and last[:1] == "F" and kind in "BI" and last[1:] != f"{stage}.{m}"
        order.append(f"{'+' if together and draw.random() < 0.5 else ''}{kind}{stage}.{m}")
    return [" ".join(order) for order in orders]


def drawn(seed: int) -> tuple[Problem, Plan, FiniteSchedule]:
    draw, plan = Random(seed), shared_plan()
    problem = chain_problem(
        [1] * 6,
        [2] * 6,
        cluster(2),
        activations=[draw.randint(0, 9) for _ in range(7)],
        weights=[draw.randint(0, 9) for _ in range(6)],
        saved=[draw.randint(0, 9) for _ in range(6)],
        mode="sync",
        mini_batch=MICRO_BATCHES,
    )
    orders = drawn_orders(draw, bool(seed % 4), bool(seed % 2), bool(seed % 3))
    return problem, plan, FiniteSchedule(lanes=tuple(lane((at,), order) for at, order in enumerate(orders)))


def peak_by_definition(tasks: IndexedTasks, number: int, of_stage: dict[int, StageMemory]) -> tuple[int, int]:
    """Task by task: a micro-batch is live from the start of its F to the end of its B or W."""
    first, end = int(tasks.first[number]), int(tasks.first[number + 1])
    live = dict.fromkeys(of_stage, 0)
    held = sum(memory.held for memory in of_stage.values())
    peak, where = held, first
    for task in range(first, end):
        stage, kind = int(tasks.stage[task]), int(tasks.kind[task])
        live[stage] += kind == F
        now = held + sum(
            live[at] * memory.per_micro_batch + (live[at] > 0) * memory.while_live
            for at, memory in of_stage.items()
        )
        other = int(tasks.pair_start[task] + tasks.pair_end[task] - task)
        for running in {task, other} if kind != R else ():
            now += of_stage[int(tasks.stage[running])].workspace
        if now > peak:
            peak, where = now, task
        live[stage] -= kind in (B, W)
    return peak, where


@pytest.mark.parametrize("scale", [1, 2**61], ids=["bytes", "beyond 64 bits"])
@pytest.mark.parametrize("seed", range(30))
def test_the_most_bytes_of_a_lane(seed: int, scale: int) -> None:
    draw = Random(seed)
    problem, plan, schedule = drawn(seed)
    tasks = finite_tasks(problem, plan, schedule)
    for number in range(2):
        of_stage = {at: Memory(*(scale * draw.randint(0, 5) for _ in range(4))) for at in range(number, 6, 2)}
        assert lane_peak(tasks, number, of_stage) == peak_by_definition(tasks, number, of_stage)


def reached_by_definition(problem: Problem, plan: Plan, tasks: IndexedTasks) -> list[int]:
    """How far each lane comes: again and again every lane runs what it can."""
    between = waits(plan, tasks, waiting_stages(CostModel(problem), plan))
    needs: dict[int, list[int]] = {}
    for task, needed in zip(between.task.tolist(), between.needed.tolist(), strict=True):
        needs.setdefault(int(tasks.pair_start[task]), []).append(needed)
    reached, moved = tasks.first[:-1].tolist(), True
    while moved:
        moved = False
        for number, at in enumerate(reached):
            done = at < tasks.first[number + 1] and all(
                needed < reached[int(tasks.lane[needed])] for needed in needs.get(at, ())
            )
            if done:
                reached[number], moved = int(tasks.pair_end[at]) + 1, True
    return reached


@pytest.mark.parametrize("seed", range(60))
def test_lanes_that_wait_for_each_other(seed: int) -> None:
    problem, plan, schedule = drawn(seed)
    tasks = finite_tasks(problem, plan, schedule)
    reached = reached_by_definition(problem, plan, tasks)
    found = deadlock(tasks, waits(plan, tasks, waiting_stages(CostModel(problem), plan)))
    assert (found is None) == bool(np.all(np.array(reached) == tasks.first[1:]))
    verdict = check_schedule(problem, plan, schedule)
    assert (verdict.status == "valid") == (found is None)


def test_both_outcomes_are_drawn() -> None:
    assert {check_schedule(*drawn(seed)).status for seed in range(60)} == {"valid", "invalid"}
