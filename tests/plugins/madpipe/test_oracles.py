"""Every column of the oracle table, each by the code that computes it and by enumeration."""

from itertools import count

import pytest

from pipebench.algorithms.chains.contiguous import longest_period
from pipebench_madpipe.allocation import Estimate
from pipebench_madpipe.label_search import estimated_optimum
from pipebench_madpipe.planner import plan
from pipebench_madpipe.plugin import MadPipeOptions
from tests.algorithms.oracles import ORACLES
from tests.plugins.madpipe.brute_force import (
    any_optimum,
    chain_of,
    class_of,
    class_optimum,
    devices_of,
    on_devices,
    printed_dp,
    solved,
)
from tests.plugins.running import context

pytestmark = pytest.mark.parametrize("name", ORACLES)
PRINTED, TIGHT, BOUND = Estimate(False, False), Estimate(True, False), Estimate(True, True)


def test_estimates(name: str) -> None:
    oracle = ORACLES[name]
    of, below = class_of(oracle.problem), longest_period(chain_of(oracle.problem)) + 1
    assert estimated_optimum(of, PRINTED, 1, below).lower_ns == oracle.printed
    assert estimated_optimum(of, TIGHT, 1, below).lower_ns == oracle.tight
    assert estimated_optimum(of, BOUND, 1, below).lower_ns <= oracle.one_special
    targets = (t for t in count(1) if printed_dp(oracle.figures, t, oracle.devices, oracle.memory) <= t)
    assert next(targets) == oracle.printed


def test_the_printed_allocation_scheduled(name: str) -> None:
    oracle = ORACLES[name]
    of, below = class_of(oracle.problem), longest_period(chain_of(oracle.problem)) + 1
    found = estimated_optimum(of, PRINTED, 1, below).best
    assert found is not None
    run = solved(oracle.problem, on_devices(oracle.problem, found.bounds, devices_of(found.special)))
    assert (run and run.period) == oracle.scheduled


def test_optimum_of_the_class_and_of_all_assignments(name: str) -> None:
    oracle = ORACLES[name]
    assert class_optimum(oracle.problem) == oracle.one_special
    assert any_optimum(oracle.problem) == oracle.any_assignment


def test_planner(name: str) -> None:
    oracle = ORACLES[name]
    result = plan(oracle.problem, context(MadPipeOptions()))
    assert result.claimed_native == oracle.one_special
    assert result.termination == "optimal"
