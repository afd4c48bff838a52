"""The best plan of all planners."""

import pytest

from pipebench.bench.best import best
from pipebench.bench.problems.workload import Workload
from pipebench.domain.errors import PipebenchError
from pipebench.domain.problem import Pins, Regime
from pipebench.formats.frameworks.targets import TARGETS
from pipebench.hooks.manager import Host
from tests.language_models import TINY, problem

HOST = Host()


def workload(pins: Pins, memory_bytes: int | None = None) -> Workload:
    from msgspec.structs import replace

    made = problem(devices=4, mini_batch=16, pins=pins, **TINY)
    cluster = made.cluster
    if memory_bytes is not None:
        cluster = replace(cluster, types=tuple(replace(kind, memory_bytes=memory_bytes) for kind in cluster.types))
    regime = Regime(mode="sync", precision=made.profile.precision, optimizer="adam")
    return Workload("tiny", replace(made, cluster=cluster, regime=regime))


def test_the_fastest_wins_and_the_others_say_why_not() -> None:
    told: list[str] = []
    found = best(HOST, workload(Pins(tensor_parallel=2, pipeline=2)), timeout_s=60, told=told.append)
    times = [entry.row.simulated_s for entry in found.ranked if entry.row]
    assert times == sorted(times)
    assert [entry.planner for entry in found.ranked][:2] == ["layout", "uniform"]
    assert {entry.planner for entry in found.entries} == set(HOST.slot("planners"))
    reasons = {entry.planner: entry.reason for entry in found.entries}
    assert reasons["pipedream"] == "it has no tensor parallelism, which is pinned"
    assert "unsupported" in reasons["piper"]
    assert "pipedream" not in told
    text = "\n".join(found.why)
    assert "winner: layout" in text
    assert "runner-up: uniform" in text


def test_with_a_target_only_what_it_can_express_counts() -> None:
    pins = Pins(tensor_parallel=2, pipeline=2)
    free, bound = (
        best(HOST, workload(pins), timeout_s=60, target=TARGETS[name]) for name in ("megatron", "deepspeed")
    )
    assert all(
        TARGETS["deepspeed"].refusal(e.outcome.problem, e.outcome.plan) == ""
        for e in bound.ranked
        if e.outcome and e.outcome.plan
    )
    assert free.ranked[0].row is not None
    assert bound.ranked[0].row is not None
    assert (free.ranked[0].row.simulated_s or 0) <= (bound.ranked[0].row.simulated_s or 0)


def test_nothing_fits() -> None:
    with pytest.raises(PipebenchError, match=r"no planner has a plan that fits: .*layout: infeasible"):
        best(HOST, workload(Pins(tensor_parallel=2, pipeline=2), memory_bytes=10**6), timeout_s=60)


def test_no_time() -> None:
    with pytest.raises(PipebenchError, match=r"no time left of 0\.5 s"):
        best(HOST, workload(Pins(tensor_parallel=2, pipeline=2)), timeout_s=0.5)
