"""MadPipe-DP by labels against enumeration, and what its estimates promise."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipebench.algorithms.contiguous import StageRange, contiguous_optimum, longest_period
from pipebench.domain.problem import Problem
from pipebench_madpipe.estimate import Estimate, admits
from pipebench_madpipe.label_search import allocations_at, estimated_optimum
from tests.algorithms.strategies import chains
from tests.algorithms.test_contiguous import figures_of
from tests.plugins.madpipe.brute_force import (
    allocations,
    chain_of,
    class_of,
    class_optimum,
    estimate_meets,
    printed_dp,
)

ESTIMATES = [Estimate(False, False), Estimate(True, False), Estimate(True, True)]
small = settings(max_examples=60, deadline=None)


@pytest.mark.parametrize("estimate", ESTIMATES)
@small
@given(problem=chains(most_layers=6, most_devices=3), period=st.integers(1, 120))
def test_equal_to_enumeration_at_one_period(estimate: Estimate, problem: Problem, period: int) -> None:
    of, figures = class_of(problem), figures_of(problem)
    met = [
        a
        for a in allocations(of.length, of.most)
        if estimate_meets(figures, a, period, of.memory, tight=estimate.tight, in_place=estimate.in_place)
    ]
    lone = [a for a in met if not any(a.special) and len(a.special) == of.most]
    found, _, none = allocations_at(of, period, estimate, 4)
    if estimate.tight:
        assert none == (not met)
    else:
        # As printed one stage alone on the special GPU has g - 1 live, so a partition can only gain by that.
        assert not none or not met
    assert lone == [] or found
    for a in found:
        assert a.devices <= of.most
        assert admits(of.table, *a.arrays, of.memory, period, estimate)


@small
@given(problem=chains(most_layers=6, most_devices=3, least_time=1))
def test_the_printed_optimum_is_that_of_the_recursion(problem: Problem) -> None:
    of, figures = class_of(problem), figures_of(problem)
    below = longest_period(chain_of(problem)) + 1
    found = estimated_optimum(of, ESTIMATES[0], 1, below)
    meets = (t for t in range(1, below) if printed_dp(figures, t, of.most, of.memory) <= t)
    assert found.lower_ns == next(meets, below)


@settings(max_examples=40, deadline=None)
@given(problem=chains(most_layers=4, most_devices=3))
def test_estimates_are_ordered_and_the_last_bounds_the_class(problem: Problem) -> None:
    chain, of = chain_of(problem), class_of(problem)
    below = longest_period(chain) + 1
    contiguous = contiguous_optimum(chain, StageRange(1, of.most), of.memory).best
    printed, tight, bound = (estimated_optimum(of, e, 1, below).lower_ns for e in ESTIMATES)
    assert printed <= tight <= (contiguous.period_ns if contiguous else below)
    assert bound <= tight
    optimum = class_optimum(problem)
    assert bound <= (below if optimum is None else optimum)


@given(problem=chains(), period=st.integers(1, 100), longer=st.integers(1, 30))
def test_monotone_in_the_period(problem: Problem, period: int, longer: int) -> None:
    of = class_of(problem)
    if allocations_at(of, period, ESTIMATES[2], 1)[0]:
        assert allocations_at(of, period + longer, ESTIMATES[2], 1)[0]
