"""The table of stages equals what the chain says of each."""

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from pipebench.algorithms.chain import build_chain
from pipebench.algorithms.linearise import linearise
from pipebench.algorithms.stage_table import stage_table
from pipebench.costs.model import CostModel
from pipebench.domain.problem import Problem, Recompute
from tests.algorithms.strategies import dags
from tests.builders import cluster


@settings(max_examples=60, deadline=None)
@given(dags(most_operators=6), st.sampled_from(["none", "stage"]))
def test_bytes_and_times_of_every_stage(problem: Problem, recompute: Recompute) -> None:
    problem = msgspec.structs.replace(problem, cluster=cluster(4))
    chain = build_chain(CostModel(problem), linearise(problem.profile.graph), problem.mini_batch, recompute)
    table = stage_table(chain)
    for end in range(1, chain.length + 1):
        for first in range(end):
            held = table.weights[first, end] + table.workspace[first, end] + table.once[first, end]
            held += table.cut_held[first] + table.cut_held[end]
            each = table.each[first, end]
            assert (held, each) == chain.memory(first, end)
            assert table.floor[first, end] <= held + each
            assert first == 0 or table.floor[first, end] <= table.floor[first - 1, end]
            ns = table.forward[end] - table.forward[first] + table.backward[end] - table.backward[first]
            assert ns == chain.work_ns(first, end)
    assert (table.cut_forward + table.cut_backward == chain.arrays.cut_ns[0]).all()
