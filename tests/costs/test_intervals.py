"""Every interval of an order: the times and memory that `Formula` makes of its sums equal CostModel's."""

from itertools import pairwise

import msgspec
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pipebench.costs.model import CostModel
from pipebench.costs.sums.intervals import Intervals, leaving, touching
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem, Regime
from pipebench.domain.recomputation import Recompute
from tests.builders import cluster, dag_problem, with_model_inputs
from tests.nightly import examples

OPERATORS = 5
MICRO_BATCH = 4


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Operators with random edges forward, shared weights, memory of their own, and inputs of the model."""
    some = st.integers(0, 30)
    figures = [draw(st.lists(some, min_size=OPERATORS, max_size=OPERATORS)) for _ in range(4)]
    tensors = [
        (producer, sorted(readers), draw(some))
        for producer in range(OPERATORS - 1)
        if (readers := draw(st.sets(st.integers(producer + 1, OPERATORS - 1))))
    ]
    problem = dag_problem(
        figures[0],
        figures[1],
        tensors,
        cluster(16, bandwidth=0.7e9),
        weights=[4 * weight for weight in figures[2]],
        saved=figures[3],
        mini_batch=12,
        micro_batches=(1, 2, 4),
    )
    problem = with_model_inputs(problem, {"ids": (draw(st.sets(st.integers(0, OPERATORS - 1))), 7)})
    graph = problem.profile.graph
    names = [parameter.name for parameter in graph.parameters]
    operators = tuple(
        msgspec.structs.replace(
            each, parameters=tuple(dict.fromkeys((*each.parameters, *draw(st.sets(st.sampled_from(names))))))
        )
        if names
        else each
        for each in graph.operators
    )
    costs = problem.profile.costs[0]
    scratch = tuple(msgspec.structs.replace(each, workspace_bytes=draw(some)) for each in costs.operators)
    profile = msgspec.structs.replace(
        problem.profile,
        graph=msgspec.structs.replace(graph, operators=operators),
        costs=(msgspec.structs.replace(costs, operators=scratch),),
    )
    regime = Regime(
        mode=draw(st.sampled_from(["sync", "async"])), optimizer=draw(st.sampled_from(["adam", "none"]))
    )
    return msgspec.structs.replace(problem, profile=profile, regime=regime)


@settings(max_examples=examples(60), deadline=None)
@given(
    problems(),
    st.sets(st.integers(1, OPERATORS - 1)),
    st.sampled_from([1, 2, 3]),
    st.sampled_from(["none", "stage"]),
    st.booleans(),
)
def test_every_stage_of_a_plan(
    problem: Problem, cuts: set[int], replicas: int, recompute: Recompute, relay: bool
) -> None:
    model = CostModel(problem)
    terms = model.terms(-(-MICRO_BATCH // replicas))
    intervals = Intervals(model.graph, [(operator,) for operator in range(OPERATORS)], relay=relay)
    formula = model.formula
    compute_ns = intervals.compute_ns(terms)
    content = intervals.holdings(terms, recompute == "stage")
    memories = formula.memory(intervals.with_state(content, formula, replicas), recompute)
    bounds = [0, *sorted(cuts), OPERATORS]
    stages = tuple(
        Stage(
            operators=tuple(f"op{operator}" for operator in range(first, end)),
            devices=tuple(range(replicas * number, replicas * (number + 1))),
            data_parallel=replicas,
            micro_batch=MICRO_BATCH,
            recompute=recompute,
        )
        for number, (first, end) in enumerate(pairwise(bounds))
    )
    plan = Plan(stages=stages, routing="relay" if relay else "direct")
    edges = model.messages(plan)
    for position, (first, end) in enumerate(pairwise(bounds)):
        at = first, end
        memory = model.stage_memory(plan, position, edges)
        for name in ("held", "per_micro_batch", "while_live", "workspace"):
            whole = np.broadcast_to(getattr(memories, name), (OPERATORS + 1, OPERATORS + 1))
            assert whole[at] == getattr(memory, name), name
        update_ns = formula.update_ns(model.all_reduce_ns(stages[position], plan))
        own = tuple(int(part[at]) for part in compute_ns)
        assert len(own) == 3
        assert formula.times(own, update_ns, MICRO_BATCH, 1, recompute) == model.stage_times(
            stages[position], plan
        )


def test_a_constant_in_several_groups_counts_once_and_sends_nothing() -> None:
    """op0 is a constant that op1 and op2 read; each of two groups has its own."""
    problem = dag_problem([5, 1, 2], [0, 0, 0], [(0, (1, 2), 9)], cluster(2), saved=[3, 1, 1])
    graph = problem.profile.graph
    constant = msgspec.structs.replace(graph.operators[0], constant=True)
    graph = msgspec.structs.replace(graph, operators=(constant, *graph.operators[1:]))
    problem = msgspec.structs.replace(problem, profile=msgspec.structs.replace(problem.profile, graph=graph))
    model = CostModel(problem)
    intervals = Intervals(model.graph, [(0, 1), (0, 2)])
    forward, _, _ = intervals.compute_ns(model.terms(1))
    assert (forward[0, 1], forward[1, 2], forward[0, 2]) == (6, 7, 8)
    assert not intervals.outgoing_sums(model.terms(1).exchanged_bytes).any()


def test_sums_over_rectangles_equal_a_count_interval_by_interval() -> None:
    random = np.random.default_rng(5)
    for _ in range(20):
        n = int(random.integers(2, 9))
        producers = random.integers(0, n, 6).tolist()
        readers = [sorted({p, *random.integers(p, n, 3).tolist()} - {p}) or [p] for p in producers]
        weights = random.integers(1, 50, 6)
        last = [places[-1] for places in readers]
        real = [used if used != [p] else [] for used, p in zip(readers, producers, strict=True)]
        sent = leaving(n, producers, last).sums(weights)
        received = touching(n, real, producers).sums(weights)
        items = list(zip(producers, real, weights.tolist(), strict=True))
        for i in range(n):
            for j in range(i + 1, n + 1):
                assert sent[i, j] == sum(w for p, used, w in items if i <= p < j and any(r >= j for r in used))
                assert received[i, j] == sum(w for p, used, w in items if p < i and any(i <= r < j for r in used))
