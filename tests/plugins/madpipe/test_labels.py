"""MadPipe-DP by labels against enumeration, and what its estimates promise."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipebench.algorithms.chains.contiguous import StageRange, contiguous_optimum, longest_period
from pipebench.domain.problem import Problem
from pipebench_madpipe.allocation import Estimate, admits
from pipebench_madpipe.label_search import allocations_at, estimated_optimum, proven_bound
from pipebench_madpipe.stage_table import WORK
from tests.algorithms.strategies import chains
from tests.algorithms.test_contiguous import figures_of
from tests.builders import chain_problem, cluster
from tests.nightly import examples
from tests.plugins.madpipe.brute_force import (
    allocations,
    chain_of,
    class_of,
    class_optimum,
    estimate_meets,
    printed_dp,
)

ESTIMATES = [Estimate(False, False), Estimate(True, False), Estimate(True, True)]
small = settings(max_examples=examples(60), deadline=None)


@pytest.mark.parametrize("estimate", ESTIMATES)
@small
@given(problem=chains(most_layers=6, most_devices=3), period=st.integers(1, 120), least=st.integers(1, 3))
def test_equal_to_enumeration_at_one_period(estimate: Estimate, problem: Problem, period: int, least: int) -> None:
    figures = figures_of(problem)
    of = replace(class_of(problem), least=min(least, problem.cluster.size))
    met = [
        a
        for a in allocations(of.length, of.most)
        if a.devices >= of.least
        and estimate_meets(figures, a, period, of.memory, tight=estimate.tight, in_place=estimate.in_place)
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
        assert of.least <= a.devices <= of.most
        assert admits(of.table, *a.arrays, of.memory, period, estimate)


@small
@given(problem=chains(most_layers=6, most_devices=3, least_time=1), share=st.floats(0, 1))
def test_what_is_reached_is_what_the_estimate_admits(problem: Problem, share: float) -> None:
    """With as little memory as the period leaves."""
    of = class_of(problem)
    longest = longest_period(chain_of(problem))
    period = round(longest / of.most + share * longest / 2)

    def admitted(memory: int) -> bool:
        listed = (a.arrays for a in allocations(of.length, of.most))
        return any(admits(of.table, *arrays, memory, period, ESTIMATES[2]) for arrays in listed)

    low, high = 0, 2000
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if admitted(middle) else (middle + 1, high)
    for memory in (low - 1, low, low + 20):
        found, _, none = allocations_at(replace(of, memory=memory), period, ESTIMATES[2], 1)
        assert none == (not found) == (not admitted(memory))


@small
@given(
    problem=chains(most_layers=6, most_devices=3, least_time=1),
    above=st.integers(-20, 20),
    labels=st.integers(1, 200),
    from_above=st.booleans(),
)
def test_a_bound_of_few_labels_is_never_above_the_optimum(
    problem: Problem, above: int, labels: int, from_above: bool
) -> None:
    of = class_of(problem)
    longest = longest_period(chain_of(problem)) + 1
    optimum = estimated_optimum(of, ESTIMATES[2], 1, longest).lower_ns
    below = max(1, min(longest, optimum + above))

    def bound(most: int) -> int:
        found = proven_bound(
            of, ESTIMATES[2], 1, below, lambda: False, within=3, each_labels=most, from_above=from_above
        )
        assert not (from_above and above <= 0 and most > labels) or found.probes <= 1
        return found.lower_ns

    assert bound(labels) <= min(optimum, below)
    assert min(optimum, below) - 3 <= bound(10**6) <= min(optimum, below)


@small
@given(problem=chains(most_layers=6, most_devices=3, least_time=1), share=st.floats(0, 1))
def test_the_least_memory_at_a_period_is_that_of_enumeration(problem: Problem, share: float) -> None:
    """With no byte to spare a bound that drops labels too early shows at once."""
    of, figures = class_of(problem), figures_of(problem)
    work = int(of.table.layers[WORK, -1])
    period = round(work / of.most + share * work)
    low, high = 0, 1000
    while low < high:
        middle = (low + high) // 2
        if allocations_at(replace(of, memory=middle), period, ESTIMATES[2], 1)[0]:
            high = middle
        else:
            low = middle + 1
    assert not any(
        estimate_meets(figures, a, period, low - 1, tight=True, in_place=True)
        for a in allocations(of.length, of.most)
    )


@pytest.mark.parametrize(
    ("forward", "backward", "activations", "weights", "memory", "bandwidth", "devices", "period"),
    [
        # What the special GPU holds beside its largest group must be compared, too.
        (
            (4, 12, 11, 11, 11, 1, 1, 12),
            (9, 8, 5, 5, 6, 1, 12, 7),
            (2, 4, 12, 16, 13, 18, 20, 19, 0),
            (5, 3, 4, 3, 3, 3, 5, 2),
            *(128, 4e9, 4, 43),
        ),
        # What it holds without that group.
        (
            (9, 8, 4, 2, 12, 3, 9, 10, 4),
            (8, 3, 11, 10, 4, 4, 9, 8, 4),
            (19, 1, 11, 12, 7, 14, 3, 15, 10, 0),
            (3, 5, 0, 5, 1, 0, 4, 1, 6),
            *(118, 4e9, 3, 60),
        ),
        # Its load.
        ((6, 3, 7, 8, 4), (4, 8, 10, 3, 9), (20, 1, 1, 17, 15, 0), (5, 0, 0, 5, 0), 139, 2e9, 4, 23),
    ],
)
def test_no_label_is_dropped_for_one_that_is_worse_in_something(
    forward: tuple[int, ...],
    backward: tuple[int, ...],
    activations: tuple[int, ...],
    weights: tuple[int, ...],
    memory: int,
    bandwidth: float,
    devices: int,
    period: int,
) -> None:
    """Chains, found by search, whose least memory at a period needs a label that a laxer order drops."""

    def made(memory: int) -> Problem:
        on = cluster(devices, memory, bandwidth)
        return chain_problem(forward, backward, on, activations=activations, weights=weights)

    for problem, exists in ((made(memory), True), (made(memory - 1), False)):
        of, figures = class_of(problem), figures_of(problem)
        assert exists == any(
            estimate_meets(figures, a, period, of.memory, tight=True, in_place=True)
            for a in allocations(of.length, devices)
        )
        found, _, none = allocations_at(of, period, ESTIMATES[2], 1)
        assert (bool(found), none) == (exists, not exists)


@small
@given(problem=chains(most_layers=6, most_devices=3, least_time=1))
def test_the_printed_optimum_is_that_of_the_recursion(problem: Problem) -> None:
    of, figures = class_of(problem), figures_of(problem)
    below = longest_period(chain_of(problem)) + 1
    found = estimated_optimum(of, ESTIMATES[0], 1, below)
    meets = (t for t in range(1, below) if printed_dp(figures, t, of.most, of.memory) <= t)
    assert found.lower_ns == next(meets, below)


@settings(max_examples=examples(40), deadline=None)
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
