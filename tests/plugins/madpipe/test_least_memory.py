"""The least memory of the class against enumeration: with it there is a plan, with a byte less there is none."""

import msgspec
from hypothesis import given, settings

from pipebench.algorithms.chains.contiguous import StageRange, least_memory
from pipebench.domain.problem import Problem
from pipebench_madpipe.class_memory import least_class_memory
from pipebench_madpipe.class_search import ClassSearch
from tests.algorithms.strategies import chains
from tests.builders import cluster
from tests.plugins.madpipe.brute_force import chain_of, class_of, class_optimum


@settings(max_examples=60)
@given(problem=chains(most_layers=4, most_devices=3, least_time=1))
def test_a_plan_exists_from_the_least_memory_on(problem: Problem) -> None:
    of, devices = class_of(problem), problem.cluster.size
    enough = least_memory(chain_of(problem), StageRange(1, devices))
    least = least_class_memory(of.table, devices, enough)

    def optimum(memory: int) -> int | None:
        return class_optimum(msgspec.structs.replace(problem, cluster=cluster(devices, memory)))

    assert optimum(max(least, 1)) is not None
    assert least <= 1 or optimum(least - 1) is None


@settings(max_examples=60)
@given(problem=chains(most_layers=4, most_devices=3, least_time=1))
def test_with_a_byte_less_no_period_is_tried(problem: Problem) -> None:
    of, chain, stages = class_of(problem), chain_of(problem), StageRange(1, problem.cluster.size)
    least = least_class_memory(of.table, stages.most, least_memory(chain, stages))
    labels = []
    for memory in (least, least - 1):
        search = ClassSearch(chain, stages, memory, True, lambda: False)
        search.run()
        labels.append(search.counts.get("labels"))
    assert search.best is None
    assert labels[1] is None
    assert labels[0] is not None
