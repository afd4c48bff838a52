"""Search time of piper and tarnawski on published inputs; run with --benchmark-enable."""

import pytest

from pipebench.formats.profiles.piper import PiperOptions, read
from pipebench_piper.planner import plan as piper
from pipebench_piper.plugin import PiperPlannerOptions
from pipebench_tarnawski.planner import plan as tarnawski
from pipebench_tarnawski.plugin import TarnawskiPlannerOptions
from tests.benchmarks.timed import keep_counters
from tests.plugins.piper.problems import GIB, on_cluster, published
from tests.plugins.piper.test_published import longer
from tests.plugins.running import context
from tests.plugins.tarnawski.test_published import problem


@pytest.mark.parametrize("choice", ["greedy", "exact"])
def test_piper_bert_on_64(benchmark, choice) -> None:  # type: ignore[no-untyped-def]
    asked = on_cluster(published("bert32a100"), 64, 8 * GIB, 1920)
    options = PiperPlannerOptions(memory="piper", choice=choice)
    benchmark(lambda: piper(asked, context(options)))
    counted = context(options)
    piper(asked, counted)
    keep_counters(benchmark, counted.counters)


def test_piper_under_tight_memory(benchmark) -> None:  # type: ignore[no-untyped-def]
    """64 layers: most stages need a knapsack."""
    asked = on_cluster(read(longer(64), "bert64.json", PiperOptions()), 64, 2 * GIB, 1920)
    benchmark(lambda: piper(asked, context(PiperPlannerOptions(memory="piper", choice="greedy"))))


def test_piper_gnmt_on_4(benchmark) -> None:  # type: ignore[no-untyped-def]
    asked = on_cluster(published("gnmt"), 4, 2.5 * GIB, 256)
    benchmark.pedantic(
        lambda: piper(asked, context(PiperPlannerOptions(memory="piper"))), warmup_rounds=1, rounds=2
    )


def test_tarnawski_bert_training(benchmark) -> None:  # type: ignore[no-untyped-def]
    asked = problem("OperatorGraphs/bert_l-3_training", 3)
    options = TarnawskiPlannerOptions(memory="released")
    benchmark(lambda: tarnawski(asked, context(options)))
    counted = context(options)
    tarnawski(asked, counted)
    keep_counters(benchmark, counted.counters)
