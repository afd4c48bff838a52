"""A chain with fewer cuts: exact costs, allocations of the whole chain, and plans as with all cuts."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pipebench.algorithms.chains.contiguous import StageRange, contiguous_optimum
from pipebench.domain.problem import Problem
from pipebench_madpipe.allocation import Estimate, admits
from pipebench_madpipe.class_search import ClassSearch, Effort, around, restricted_table, spread
from pipebench_madpipe.label_search import allocations_at
from tests.algorithms.strategies import chains
from tests.plugins.madpipe.brute_force import chain_of, class_of, class_optimum

BOUND = Estimate(True, True)


@settings(deadline=None)
@given(chains(most_layers=7), st.data(), st.integers(1, 120))
def test_what_some_cuts_meet_the_whole_chain_meets(problem: Problem, data: st.DataObject, period: int) -> None:
    of = class_of(problem)
    cut = data.draw(st.integers(0, of.length))
    for near in (spread(of, (cut,)), around(of, (cut,))):
        found, _, _ = allocations_at(near, period, BOUND, 4)
        for allocation in map(near.on_whole_chain, found):
            assert (allocation.bounds[0], allocation.bounds[-1]) == (0, of.length)
            assert admits(of.table, *allocation.arrays, of.memory, period, BOUND)


@settings(deadline=None)
@given(chains(most_layers=7), st.data())
def test_stages_between_kept_cuts_cost_the_same(problem: Problem, data: st.DataObject) -> None:
    table = class_of(problem).table
    length = table.layers.shape[1] - 1
    kept = data.draw(st.sets(st.integers(0, length)))
    cuts = np.array(sorted(kept | {0, length}), np.int64)
    few = restricted_table(table, cuts)
    assert few.layers.flags.c_contiguous
    assert few.stages.flags.c_contiguous
    assert few.layers.tolist() == table.layers[:, cuts].tolist()
    assert few.stages.tolist() == [[table.stages[end, first].tolist() for first in cuts] for end in cuts]


@settings(max_examples=40, deadline=None)
@given(chains(most_layers=4, most_devices=3), st.integers(0, 40))
def test_a_long_chain_with_little_effort_is_still_bounded(problem: Problem, labels: int) -> None:
    chain, stages, memory = chain_of(problem), StageRange(1, problem.cluster.size), problem.cluster.memory_bytes
    effort = Effort(short_chain=0, coarse_labels=labels, bound_labels=labels)
    search = ClassSearch(chain, stages, memory, True, lambda: False, effort=effort)
    search.run()
    optimum, contiguous = class_optimum(problem), contiguous_optimum(chain, stages, memory).best
    if search.best is not None:
        assert optimum is not None
        assert search.lower_ns <= optimum <= search.best.period_ns
    if contiguous is not None:
        assert search.best is not None
        assert search.best.period_ns <= contiguous.period_ns
