"""Costs, sizes and expert strategies equal those of PaSE's prototype, where both count the same."""

import pytest

from pipebench.hooks.context import Context
from pipebench_pase import planner
from pipebench_pase.paper_costs import CostMachine
from pipebench_pase.plugin import PaSEOptions
from pipebench_pase.tables import Pricing
from tests.plugins.pase.problems import MODELS, by_experts, pase, problem
from tests.plugins.pase.reference import REFERENCE

CASES = [(name, devices, 128) for name in MODELS for devices in (4, 8)]
SMALL_BATCHES = [(name, devices, 64) for name in ("rnnlm", "transformer") for devices in (4, 8)]
SIX_DIGITS = 1e-9
"""The prototype's costs are whole numbers that floats hold: the sums agree far beyond six digits."""


@pytest.mark.parametrize(("name", "devices", "samples"), CASES + SMALL_BATCHES)
def test_the_best_cost_is_the_prototypes(name: str, devices: int, samples: int) -> None:
    expected = REFERENCE[name, devices, samples]
    found = pase(problem(name, devices, samples))
    assert found.claimed_native == pytest.approx(expected.best, rel=SIX_DIGITS)
    assert found.claimed_s == pytest.approx(expected.best / 1e13, rel=SIX_DIGITS)
    assert found.termination == "optimal"


@pytest.mark.parametrize(("name", "devices", "samples"), CASES + SMALL_BATCHES)
def test_data_parallel_and_expert_strategies_cost_what_the_prototype_says(
    name: str, devices: int, samples: int
) -> None:
    expected = REFERENCE[name, devices, samples]
    plain = by_experts(problem(name, devices, samples), strategy="data-parallel")
    assert plain.claimed_native == pytest.approx(expected.data_parallel, rel=SIX_DIGITS)
    expert = by_experts(problem(name, devices, samples))
    assert expert.claimed_native == pytest.approx(expected.expert, rel=SIX_DIGITS)


@pytest.mark.parametrize(("name", "devices", "samples"), CASES)
def test_one_device_costs_what_the_prototype_calls_serial(name: str, devices: int, samples: int) -> None:
    alone = pase(problem(name, 1, samples))
    assert alone.claimed_native == pytest.approx(REFERENCE[name, devices, samples].serial, rel=SIX_DIGITS)
    assert all(split == {} for split in alone.plan.stages[0].sharding)


@pytest.mark.parametrize(("name", "devices", "samples"), CASES)
def test_sizes_of_the_search_are_the_prototypes(name: str, devices: int, samples: int) -> None:
    expected = REFERENCE[name, devices, samples]
    context = Context(options=PaSEOptions())
    given = problem(name, devices, samples)
    planner.plan(given, context)
    counted = context.counters
    assert (counted["vertices"], counted["edges"]) == (expected.vertices, expected.edges)
    assert counted["most_configurations"] == expected.most
    assert counted["configurations"] / counted["vertices"] == pytest.approx(expected.mean)
    assert counted["largest_dependent_set"] == expected.dependent
    assert counted["largest_table"] == expected.largest
    assert counted["combinations"] == expected.total


def test_cutoff_and_machine_are_options() -> None:
    given = problem("alexnet", 8)
    assert pase(given, cutoff=4).claimed_native == pase(given).claimed_native
    assert pase(given, cutoff=1).claimed_native <= pase(given, cutoff=64).claimed_native
    # Twice the arithmetic on the same links: a word costs twice as many multiply-adds.
    assert pase(given, tflops=20.0).claimed_native == pase(given, bandwidth=8.0).claimed_native
    assert pase(given, word_bytes=4).claimed_native == pase(given, bandwidth=32.0).claimed_native


def test_each_tensor_between_two_operators_may_count() -> None:
    given = problem("transformer", 4)
    assert pase(given, parallel="each").claimed_native >= pase(given).claimed_native
    graph = given.profile.graph
    zeros = [0] * len(graph.operators)
    splits = {op.name: {"batch": 2} for op in graph.operators}
    splits["encoder.0.attention.unstack"] = {"batch": 2, "sequence": 2}
    splits["encoder.0.attention.scores"] = {"batch": 2, "keys": 2}
    last, each = (
        Pricing(graph, 128, CostMachine(1e13, 5000.0), parallel).fixed_tables(splits).costs.of(zeros)
        for parallel in ("last", "each")
    )
    # The key arrives as it is cut; of the query, which the prototype forgets, half the positions are missing.
    assert each - last == 5000.0 * 2 * (64 * 8 * 128 * 64)
