"""Is a schedule of torch.distributed.pipelining sound: complete, in order, and does it end?

The rules are those of torch's `_validate_schedule`, and what it does not look at: repeated tasks, gaps in the
numbers, and deadlock across ranks, which torch finds only when it adds communication and cannot place.
"""

from dataclasses import dataclass

from pipebench.check.cycle import shortest_cycle
from pipebench.domain.errors import PipebenchError
from pipebench.formats.torch_cells import Ranks, Step, Task


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
    rank_of = tuple(
        next(places[t][0] for t in (Task(stage, "F", n) for n in range(count)) if t in places)
        for stage in range(stages)
    )
    _complete(places, stages, count, source)
    _in_order(places, stages, count, source)
    _ends(ranks, places, stages, source)
    return Sound(ranks, count, rank_of, tuple(map(_peak, ranks)))


Places = dict[Task, tuple[int, int, int]]
"""For each task its rank, the number of its step, and the column of that in the file."""


def _where(places: Places, task: Task) -> str:
    rank, _, column = places[task]
    return f"rank {rank}, step {column} ({_named(task)})"


def _named(task: Task) -> str:
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
            missing = _missing(ranks, places, stages, reached, rank)
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
        and (missing := _missing(ranks, places, stages, reached, rank)) is not None
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


def _missing(ranks: Ranks, places: Places, stages: int, reached: list[int], rank: int) -> Task | None:
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
