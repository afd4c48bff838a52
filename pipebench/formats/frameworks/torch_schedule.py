"""Schedules of torch.distributed.pipelining: their CSV, whether one is sound, and this project's
other way round.
"""

import re
from dataclasses import dataclass

from pipebench.check import require_valid_plan
from pipebench.check.structure import shortest_cycle
from pipebench.costs.model import CostModel
from pipebench.costs.placement import lanes_of
from pipebench.domain.errors import PipebenchError
from pipebench.domain.limits import MOST_SCHEDULE_CELLS, MOST_SCHEDULE_RANKS
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import (
    ALL_REDUCE,
    INPUT_GRADIENT,
    WEIGHT_GRADIENT,
    FiniteSchedule,
    Lane,
    Schedule,
)
from pipebench.formats.files import read_file

_CELL = re.compile(r"(\d{1,6})(F|B|I|W)(\d{1,7})", re.ASCII)
_REDUCE = re.compile(r"(\d{1,6})REDUCE_GRAD\d{0,7}", re.ASCII)
_PAIR = re.compile(r"\((\d{1,6}[FBIW]\d{1,7});(\d{1,6}[FBIW]\d{1,7})\)OVERLAP_F_B", re.ASCII)
_COMMUNICATION = re.compile(r"\d+(SEND_F|RECV_F|SEND_B|RECV_B|UNSHARD|RESHARD)\d*", re.ASCII)
SYNTAX = "write <stage>F|B|I|W<micro-batch>, such as 0F3, <stage>REDUCE_GRAD or (0F7;7B3)OVERLAP_F_B"


@dataclass(frozen=True, slots=True)
class Task:
    """kind: F, B, I, W or R (all gradients of the stage are reduced; micro-batch 0)."""

    stage: int
    kind: str
    micro_batch: int

    def __str__(self) -> str:
        if self.kind == "R":
            return f"{self.stage}REDUCE_GRAD"
        return f"{self.stage}{self.kind}{self.micro_batch}"


@dataclass(frozen=True, slots=True)
class Step:
    """What one cell runs; column: its place in the row, from 0."""

    column: int
    tasks: tuple[Task, ...]


Ranks = tuple[tuple[Step, ...], ...]


def read_cells(data: bytes, source: str) -> Ranks:
    """The steps of each rank.

    Raises PipebenchError with row and column: a byte-order mark, other than ASCII, too many cells, a row
    without tasks, a cell that is none.
    """
    if data.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        raise PipebenchError(f"{source}: starts with a byte-order mark", "save it as plain ASCII without one")
    cells = data.count(b",") + data.count(b"\n") + 1
    if cells > MOST_SCHEDULE_CELLS:
        raise PipebenchError(f"{source}: about {cells} cells, at most {MOST_SCHEDULE_CELLS} are read")
    try:
        text = data.decode("ascii")
    except UnicodeDecodeError as error:
        raise PipebenchError(f"{source}: byte {error.start} is not ASCII", SYNTAX) from None
    rows = text.replace("\r\n", "\n").removesuffix("\n").split("\n")
    if len(rows) > MOST_SCHEDULE_RANKS:
        raise PipebenchError(f"{source}: {len(rows)} ranks, at most {MOST_SCHEDULE_RANKS} are read")
    ranks = tuple(
        tuple(
            Step(column, _tasks(cell, f"{source}: rank {rank}, step {column}"))
            for column, cell in enumerate(row.split(","))
            if cell
        )
        for rank, row in enumerate(rows)
    )
    for rank, steps in enumerate(ranks):
        if not steps:
            raise PipebenchError(
                f"{source}: rank {rank} has no tasks", "write one row for each rank, without a header"
            )
    return ranks


def write_cells(ranks: Ranks) -> bytes:
    """One row a rank, tasks close up, steps of two as OVERLAP_F_B."""
    return "".join(",".join(_text(step) for step in steps) + "\n" for steps in ranks).encode()


def _text(step: Step) -> str:
    inside = ";".join(map(str, step.tasks))
    return inside if len(step.tasks) == 1 else f"({inside})OVERLAP_F_B"


def _tasks(cell: str, where: str) -> tuple[Task, ...]:
    pair = _PAIR.fullmatch(cell)
    parts = pair.groups() if pair else (cell,)
    found = []
    for part in parts:
        plain, reduce = _CELL.fullmatch(part), _REDUCE.fullmatch(part)
        if plain:
            found.append(Task(int(plain[1]), plain[2], int(plain[3])))
        elif reduce:
            found.append(Task(int(reduce[1]), "R", 0))
        elif _COMMUNICATION.fullmatch(part):
            raise PipebenchError(
                f"{where}: {cell[:40]!r} is a communication",
                "give the compute_only file; communication follows from it",
            )
        else:
            raise PipebenchError(f"{where}: {cell[:40]!r} is no task", SYNTAX)
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Sound:
    """What a sound schedule is. rank_of: for each stage its rank. peaks: for each rank the most micro-batches of
    its stages whose forward is done (or running) and whose activations are not freed.
    """

    ranks: Ranks
    micro_batches: int
    rank_of: tuple[int, ...]
    peaks: tuple[int, ...]


def sound(ranks: Ranks, source: str) -> Sound:
    """Raises PipebenchError that names rule, rank, step, stage and micro-batch of the first thing that is
    wrong.
    """
    places = _places(ranks, source)
    stages = _stages(places, source)
    count = 1 + max(task.micro_batch for task in places if task.kind == "F")
    _complete(places, stages, count, source)
    rank_of = tuple(places[Task(stage, "F", 0)][0] for stage in range(stages))
    _in_order(places, stages, count, source)
    _ends(ranks, places, stages, source)
    return Sound(ranks, count, rank_of, tuple(map(_peak, ranks)))


Places = dict[Task, tuple[int, int, int]]
"""For each task its rank, the number of its step, and the column of that in the file."""


def _where(places: Places, task: Task) -> str:
    rank, _, column = places[task]
    return f"rank {rank}, step {column} ({_task_name(task)})"


def _task_name(task: Task) -> str:
    return f"{task.kind} of stage {task.stage}, micro-batch {task.micro_batch}"


def _places(ranks: Ranks, source: str) -> Places:
    places: Places = {}
    rank_of: dict[int, int] = {}
    for rank, steps in enumerate(ranks):
        for number, step in enumerate(steps):
            for task in step.tasks:
                if rank_of.setdefault(task.stage, rank) != rank:
                    raise PipebenchError(
                        f"{source}: rank {rank}, step {step.column}: stage {task.stage} runs on rank "
                        f"{rank_of[task.stage]} too"
                    )
                if task in places:
                    raise PipebenchError(f"{source}: {_where(places, task)}: again at step {step.column}")
                places[task] = rank, number, step.column
    return places


def _stages(places: Places, source: str) -> int:
    found = {task.stage for task in places}
    missing = next((stage for stage in range(max(found) + 1) if stage not in found), None)
    if missing is not None:
        raise PipebenchError(f"{source}: stage {missing} runs nowhere, stage {max(found)} is there")
    if not any(task.kind == "F" for task in places):
        raise PipebenchError(f"{source}: no forward (F) is run")
    return max(found) + 1


def _complete(places: Places, stages: int, count: int, source: str) -> None:
    if stages * count > 4 * len(places):
        raise PipebenchError(
            f"{source}: {stages} stages and micro-batches up to {count - 1}, but {len(places)} tasks"
        )
    for stage in range(stages):
        for number in range(count):
            ran = {kind: Task(stage, kind, number) in places for kind in "FBIW"}
            which = f"stage {stage}, micro-batch {number}"
            if not ran["F"]:
                raise PipebenchError(f"{source}: {which}: no F")
            if ran["B"] and (ran["I"] or ran["W"]):
                raise PipebenchError(f"{source}: {which}: B beside I or W")
            if not ran["B"] and not (ran["I"] and ran["W"]):
                missing = "B, or I and W" if not (ran["I"] or ran["W"]) else "I" if not ran["I"] else "W"
                raise PipebenchError(f"{source}: {which}: no {missing}")
    for task in places:
        if task.kind != "R" and task.micro_batch >= count:
            raise PipebenchError(f"{source}: {_where(places, task)}: there are {count} micro-batches")


def _gradient(places: Places, stage: int, number: int) -> Task:
    whole = Task(stage, "B", number)
    return whole if whole in places else Task(stage, "I", number)


def _in_order(places: Places, stages: int, count: int, source: str) -> None:
    for stage in range(stages):
        reduce = Task(stage, "R", 0)
        for number in range(count):
            needs = [(_gradient(places, stage, number), Task(stage, "F", number))]
            if needs[0][0].kind == "I":
                needs.append((Task(stage, "W", number), needs[0][0]))
            if reduce in places:
                needs.append((reduce, Task(stage, "W", number) if len(needs) > 1 else needs[0][0]))
            for task, before in needs:
                if places[task][1] <= places[before][1]:
                    raise PipebenchError(f"{source}: {_where(places, task)} comes before {_where(places, before)}")


def _needs(places: Places, stages: int, task: Task) -> Task | None:
    """The task of another stage without which one cannot start."""
    if task.kind == "F" and task.stage > 0:
        return Task(task.stage - 1, "F", task.micro_batch)
    if task.kind in "BI" and task.stage < stages - 1:
        return _gradient(places, task.stage + 1, task.micro_batch)
    return None


def _ends(ranks: Ranks, places: Places, stages: int, source: str) -> None:
    """Run every rank as far as it goes: what is left waits for itself."""
    reached = [0] * len(ranks)
    waiting: dict[Task, list[int]] = {}
    todo = list(range(len(ranks)))
    while todo:
        rank = todo.pop()
        while reached[rank] < len(ranks[rank]):
            missing = _missing_task(ranks, places, stages, reached, rank)
            if missing is not None:
                waiting.setdefault(missing, []).append(rank)
                break
            done = ranks[rank][reached[rank]].tasks
            reached[rank] += 1
            for task in done:
                todo += waiting.pop(task, [])
    blocked = {
        rank: missing
        for rank in range(len(ranks))
        if reached[rank] < len(ranks[rank])
        and (missing := _missing_task(ranks, places, stages, reached, rank)) is not None
    }
    if not blocked:
        return
    cycle = shortest_cycle(
        [{places[blocked[rank]][0]} if rank in blocked else set() for rank in range(len(ranks))]
    )
    told = []
    for rank in cycle:
        head = ranks[rank][reached[rank]].tasks[0]
        told.append(f"{_where(places, head)} waits for {_where(places, blocked[rank])}")
    raise PipebenchError(f"{source}: deadlock: {'; '.join(told)}", "run one of these tasks earlier on its rank")


def _missing_task(ranks: Ranks, places: Places, stages: int, reached: list[int], rank: int) -> Task | None:
    for task in ranks[rank][reached[rank]].tasks:
        needed = _needs(places, stages, task)
        if needed is not None:
            other, number, _ = places[needed]
            if number >= reached[other]:
                return needed
    return None


def _peak(steps: tuple[Step, ...]) -> int:
    live = peak = 0
    for step in steps:
        tasks = step.tasks
        live += sum(task.kind == "F" for task in tasks)
        peak = max(peak, live)
        live -= sum(task.kind in "BW" for task in tasks)
    return peak


def read_torch_schedule(path: str) -> Sound:
    """A file, checked by every rule. Raises PipebenchError that names the place."""
    return sound(read_cells(read_file(path), path), path)


def as_schedule(problem: Problem, plan: Plan, found: Sound, source: str) -> FiniteSchedule:
    """The order on the devices of a plan, with the all-reduces that the plan needs behind it.

    Two tasks that overlap run one after the other. Raises PipebenchError where the plan is invalid,
    has other stages, other placement or another number of micro-batches.
    """
    require_valid_plan(problem, plan)
    lanes, lane_of = lanes_of(plan)
    count = problem.mini_batch // (plan.stages[0].micro_batch * plan.all_pipelines)
    if len(found.rank_of) != len(plan.stages):
        raise PipebenchError(f"{source}: {len(found.rank_of)} stages, the plan has {len(plan.stages)}")
    if found.micro_batches != count:
        raise PipebenchError(f"{source}: {found.micro_batches} micro-batches, the plan has {count}")
    for stage, (rank, lane) in enumerate(zip(found.rank_of, lane_of, strict=True)):
        if rank != lane:
            raise PipebenchError(f"{source}: stage {stage} runs on rank {rank}, in the plan on device set {lane}")
    model = CostModel(problem)
    made = []
    for rank, steps in enumerate(found.ranks):
        tasks = [task for step in steps for task in step.tasks if task.kind != ALL_REDUCE]
        here = [stage for stage, lane in enumerate(lane_of) if lane == rank]
        tasks += [
            Task(stage, ALL_REDUCE, 0) for stage in here if model.needs_update_task(plan.stages[stage], plan)
        ]
        made.append(
            Lane(
                devices=lanes[rank],
                stage=tuple(task.stage for task in tasks),
                micro_batch=tuple(task.micro_batch for task in tasks),
                kinds="".join(task.kind for task in tasks),
            )
        )
    return FiniteSchedule(lanes=tuple(made))


def splits_backwards(schedule: Schedule) -> bool:
    """Whether input and weight gradients are tasks of their own anywhere."""
    return isinstance(schedule, FiniteSchedule) and any(
        not {INPUT_GRADIENT, WEIGHT_GRADIENT}.isdisjoint(lane.kinds) for lane in schedule.lanes
    )


def cells_of(plan: Plan, schedule: FiniteSchedule) -> bytes:
    """The CSV of a schedule, ranks in the order of their first stage; all-reduces are torch's own business."""
    lanes, _ = lanes_of(plan)
    by_devices = {tuple(sorted(lane.devices)): lane for lane in schedule.lanes}
    ranks: Ranks = tuple(
        tuple(
            Step(column, (Task(stage, kind, number),))
            for column, (stage, kind, number) in enumerate(
                zip(lane.stage, lane.kinds, lane.micro_batch, strict=True)
            )
            if kind != ALL_REDUCE
        )
        for lane in (by_devices[devices] for devices in lanes)
    )
    return write_cells(ranks)
