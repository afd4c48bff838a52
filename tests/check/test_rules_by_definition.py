"""C1, C2 and C4 against their definitions, spelt out naively, on random graphs, partitions and orders."""

from collections.abc import Sequence
from itertools import pairwise, permutations

from hypothesis import given, settings
from hypothesis import strategies as st

from pipebench.check import check_plan, check_schedule
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import FiniteSchedule
from tests.builders import cluster, dag_problem, stages_plan
from tests.check.orders import lane
from tests.nightly import examples

Edges = list[tuple[int, int]]


@st.composite
def graphs(draw: st.DrawFn, most: int = 7) -> tuple[int, Edges]:
    size = draw(st.integers(2, most))
    pairs = [(i, j) for i in range(size) for j in range(i + 1, size)]
    return size, sorted(draw(st.sets(st.sampled_from(pairs), max_size=10)))


def problem_of(size: int, edges: Edges, mini_batch: int = 1) -> Problem:
    tensors = [(i, (j,), 1) for i, j in edges]
    return dag_problem([1] * size, [1] * size, tensors, cluster(size), mini_batch=mini_batch)


def partition(draw: st.DrawFn, size: int) -> list[list[int]]:
    colours = [draw(st.integers(0, size - 1)) for _ in range(size)]
    groups = [[o for o in range(size) if colours[o] == c] for c in dict.fromkeys(colours)]
    return draw(st.permutations(groups))


def paths(size: int, edges: Edges) -> list[list[int]]:
    found, grown = [], [[o] for o in range(size)]
    while grown:
        found += grown
        grown = [[*path, j] for path in grown for i, j in edges if i == path[-1]]
    return found


@settings(max_examples=examples(300), deadline=None)
@given(st.data())
def test_convexity_and_acyclicity(data: st.DataObject) -> None:
    size, edges = data.draw(graphs())
    groups = data.draw(st.composite(lambda draw: partition(draw, size))())
    stages = range(len(groups))
    every = [(a, b) for a in stages for b in stages]
    order_edges = data.draw(st.lists(st.sampled_from(every), max_size=2, unique=True))
    stage_of = {o: s for s, group in enumerate(groups) for o in group}
    not_convex = {
        stage_of[path[0]]
        for path in paths(size, edges)
        if stage_of[path[0]] == stage_of[path[-1]] and any(stage_of[o] != stage_of[path[0]] for o in path)
    }
    between = {(stage_of[i], stage_of[j]) for i, j in edges if stage_of[i] != stage_of[j]} | set(order_edges)
    acyclic = any(
        all(order.index(a) < order.index(b) for a, b in between) for order in map(list, permutations(stages))
    )
    witness = check_plan(problem_of(size, edges), stages_plan(groups, order_edges=order_edges)).witness
    if not_convex:
        assert witness is not None
        assert witness.rule == "C1"
        assert witness.stage in not_convex
        assert stage_of[int(str(witness.operator)[2:])] != witness.stage
    elif not acyclic:
        assert witness is not None
        assert witness.rule == "C2"
        cycle = [int(word) for word in witness.message.split(": ")[1].split(" ") if word.isdigit()]
        assert cycle[0] == cycle[-1]
        assert all(step in between for step in pairwise(cycle))
        assert len(cycle) - 1 == shortest(len(groups), between)
    else:
        assert witness is None


def shortest(stages: int, between: set[tuple[int, int]]) -> int:
    """Length of a shortest cycle, from powers of the reachability in exactly n steps."""
    reach = set(between)
    for length in range(1, stages + 1):
        if any(a == b for a, b in reach):
            return length
        reach = {(a, d) for a, b in reach for c, d in between if b == c}
    raise AssertionError("no cycle")


def finishes(plan: Plan, lanes: Sequence[Sequence[str]], edges: Edges, mini_batch: int) -> bool:
    """Runs the lanes task by task; words like `F0.2`. A task waits for all that its samples need."""
    done: set[str] = set()
    at = [0] * len(lanes)

    def samples(stage: int, micro_batch: int) -> set[int]:
        size = plan.stages[stage].micro_batch
        return set(range(micro_batch * size, (micro_batch + 1) * size))

    def may_run(word: str) -> bool:
        kind, (stage, micro_batch) = word[0], map(int, word[1:].split("."))
        for before, after in edges:
            mine, other = (after, before) if kind == "F" else (before, after)
            if mine != stage:
                continue
            for m in range(mini_batch // plan.stages[other].micro_batch):
                if samples(other, m) & samples(stage, micro_batch) and f"{kind}{other}.{m}" not in done:
                    return False
        return kind == "F" or f"F{stage}.{micro_batch}" in done

    moved = True
    while moved:
        moved = False
        for number, tasks in enumerate(lanes):
            while at[number] < len(tasks) and may_run(tasks[at[number]]):
                done.add(tasks[at[number]])
                at[number] += 1
                moved = True
    return all(at[number] == len(tasks) for number, tasks in enumerate(lanes))


def interleaved(count: int, warm_up: int) -> list[str]:
    """`warm_up` forwards, then backwards and forwards in turn."""
    steady = ["B", "F"] * (count - warm_up)
    return ["F"] * warm_up + steady + ["B"] * warm_up


@settings(max_examples=examples(400), deadline=None)
@given(st.data())
def test_an_order_is_valid_exactly_when_it_runs_to_its_end(data: st.DataObject) -> None:
    size, edges = data.draw(graphs(most=4))
    stages = [
        s.__class__(operators=s.operators, devices=s.devices, micro_batch=data.draw(st.sampled_from([1, 2, 3, 6])))
        for s in stages_plan([[o] for o in range(size)]).stages
    ]
    plan = Plan(stages=tuple(stages))
    lanes: list[list[str]] = []
    for number, stage in enumerate(stages):
        count = 6 // stage.micro_batch
        # Mostly orders that are near to one that works, else nearly all would be dead at once.
        kinds = data.draw(st.sampled_from([interleaved(count, w) for w in range(1, count + 1)]))
        swapped = data.draw(st.integers(0, 2 * count - 2))
        if data.draw(st.booleans()):
            kinds = [*kinds[:swapped], kinds[swapped + 1], kinds[swapped], *kinds[swapped + 2 :]]
        seen = {"F": 0, "B": 0}
        tasks = []
        for kind in kinds:
            tasks.append(f"{kind}{number}.{seen[kind]}")
            seen[kind] += 1
        lanes.append(tasks)
    schedule = FiniteSchedule(
        lanes=tuple(lane(s.devices, " ".join(t)) for s, t in zip(stages, lanes, strict=True))
    )
    verdict = check_schedule(problem_of(size, edges, mini_batch=6), plan, schedule)
    assert (verdict.status == "valid") == finishes(plan, lanes, edges, 6)
    if verdict.witness is not None:
        assert verdict.witness.rule == "C4"
