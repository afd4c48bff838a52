"""The table of stages equals what the chain says of each."""

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from pipebench.algorithms.chains.chain import build_chain
from pipebench.algorithms.graph_orders import linearise
from pipebench.costs.model import CostModel
from pipebench.domain.problem import Problem
from pipebench.domain.recomputation import Recompute
from pipebench_madpipe.stage_table import (
    BACKWARD,
    CUT_BACKWARD,
    CUT_FORWARD,
    CUT_HELD,
    EACH,
    FLOOR,
    FORWARD,
    ONCE,
    WEIGHTS,
    WORK,
    WORKSPACE,
    run_table,
    stage_ns,
)
from tests.algorithms.strategies import dags
from tests.builders import cluster
from tests.nightly import examples


@settings(max_examples=examples(60), deadline=None)
@given(dags(most_operators=6), st.sampled_from(["none", "stage"]))
def test_bytes_and_times_of_every_stage(problem: Problem, recompute: Recompute) -> None:
    problem = msgspec.structs.replace(problem, cluster=cluster(4))
    chain = build_chain(CostModel(problem), linearise(problem.profile.graph), problem.mini_batch, recompute)
    table = run_table(chain)
    for end in range(1, chain.length + 1):
        for first in range(end):
            held = (
                table.stages[end, first, WEIGHTS]
                + table.stages[end, first, WORKSPACE]
                + table.stages[end, first, ONCE]
            )
            held += table.layers[CUT_HELD][first] + table.layers[CUT_HELD][end]
            each = table.stages[end, first, EACH]
            memory = chain.memory(first, end)
            assert (held + each, each) == (memory.peak(1), memory.per_micro_batch)
            assert table.stages[end, first, FLOOR] <= held + each
            assert first == 0 or table.stages[end, first, FLOOR] <= table.stages[end, first - 1, FLOOR]
            work, backward = chain.work_ns(first, end), chain.backward_ns(first, end)
            parts = [stage_ns(table, part, first, end) for part in (FORWARD, BACKWARD, WORK)]
            assert parts == [work - backward, backward, work]
    assert (table.layers[CUT_FORWARD] + table.layers[CUT_BACKWARD] == chain.arrays.cut_ns[0]).all()
