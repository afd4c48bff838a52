"""Proofs of the least time: what they claim, what their tables say, and that the checker believes no others."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from pipebench.bounds import search, time_bound
from pipebench.bounds.choices import COLUMNS, DEVICES, LIVE, choices
from pipebench.bounds.proof import time_proof
from pipebench.bounds.spine import PLACED, SAVES, STARTED, spine_of
from pipebench.certificates.bound_check import flaw_of_bound
from pipebench.costs.model import CostModel
from pipebench.domain.errors import InfeasibleProblem
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Pins, Problem, RegimeMode
from tests.bounds.drawn_problems import problems
from tests.builders import chain_problem, cluster, dag_problem, stages_plan
from tests.nightly import examples

HEALTH = [HealthCheck.too_slow, HealthCheck.data_too_large]


@settings(max_examples=examples(60), deadline=None, suppress_health_check=HEALTH)
@given(problems(), st.sampled_from([10**15, 400, 200, 120]))
def test_a_proof_is_believed_and_one_that_claims_much_more_is_not(problem: Problem, memory_bytes: int) -> None:
    on = replace(problem.cluster, types=(replace(problem.cluster.types[0], memory_bytes=memory_bytes),))
    problem = replace(problem, cluster=on)
    try:
        bound, proof = time_bound(problem), time_proof(problem)
    except InfeasibleProblem:
        return
    if proof is None:
        assert "memory" not in bound.parts
        return
    assert proof.claimed_ns <= bound.ns
    document = json.loads(json.dumps(proof.document()))
    assert flaw_of_bound(document) == ""
    document["claimed_ns"] = 2 * proof.claimed_ns + 100
    assert "ns suffice" in flaw_of_bound(document)


def tight() -> dict[str, Any]:
    """Two operators that save much, on two devices that hold two samples of both together: memory binds."""
    problem = dag_problem(
        [40, 60, 50], [40, 60, 50], [(0, (1, 2), 0)], cluster(2, memory=40), saved=[10, 10, 10], weights=[1, 1, 1],
        mini_batch=8, pins=Pins(recompute="none"),
    )  # fmt: skip
    proof = time_proof(problem)
    assert proof is not None
    assert flaw_of_bound(proof.document()) == ""
    return dict(json.loads(json.dumps(proof.document())))


def _cheaper(proof: dict[str, Any]) -> None:
    proof["tables"] = [[[number // 2 for number in row] for row in table] for table in proof["tables"]]


def _more_memory(proof: dict[str, Any]) -> None:
    proof["memory_bytes"] *= 1000
    proof["claimed_ns"] *= 2


def _cycle(proof: dict[str, Any]) -> None:
    proof["edges"].append([1, 0])


def _twice(proof: dict[str, Any]) -> None:
    proof["visits"].append([0, SAVES])


def _missing(proof: dict[str, Any]) -> None:
    proof["visits"].pop()


def _unordered(proof: dict[str, Any]) -> None:
    proof["edges"] = []


def _below_zero(proof: dict[str, Any]) -> None:
    proof["byte"] = -1


def _too_much(proof: dict[str, Any]) -> None:
    proof["share"] = proof["parts"] + 1


def _too_much_at_once(proof: dict[str, Any]) -> None:
    proof["instant"] = proof["parts"] + 1


def _empty(proof: dict[str, Any]) -> None:
    proof["tables"][0] = []


def _short(proof: dict[str, Any]) -> None:
    proof["tables"][0][0].pop()


@pytest.mark.parametrize(
    ("spoilt", "said"),
    [
        (_cheaper, "ns suffice"),
        (_more_memory, "ns suffice"),
        (_cycle, "the edges have a cycle"),
        (_twice, "an operator counts twice or not at all"),
        (_missing, "an operator counts twice or not at all"),
        (_unordered, "is on the path and not behind"),
        (_below_zero, "not whole or below zero"),
        (_too_much, "the share is more than the whole"),
        (_too_much_at_once, "the share is more than the whole"),
        (_empty, "an operator has no way to run"),
        (_short, "not as many numbers"),
    ],
)
def test_a_spoilt_proof_is_refused(spoilt: Callable[[dict[str, Any]], None], said: str) -> None:
    proof = tight()
    spoilt(proof)
    assert said in flaw_of_bound(proof)


def test_an_order_of_visits_that_the_edges_do_not_allow_is_refused() -> None:
    """Operators 0 and 2 of a path 0, 1 and one beside it: what 2 saves does not last while 1 runs."""
    table = [[1, 10, 10, 0, 5, 10, 1, 1, 10, 0]]
    proof = {
        "claimed_ns": 2, "devices": 1, "memory_bytes": 10, "every_ns": 0, "tables": [table],
        "operators": [0, 0, 0], "edges": [[0, 1], [0, 2]], "visits": [[0, 0], [2, 1], [1, 0]], "waits": 0,
        "share": 1, "parts": 1, "byte": 1, "byte_parts": 1, "instant": 0, "step_bytes": 1, "points": 4,
    }  # fmt: skip
    assert "operator 2 saves for an operator" in flaw_of_bound(proof)
    assert flaw_of_bound(proof | {"visits": [[0, 0], [1, 0], [2, 1]]}) == ""
    waiting = proof | {"waits": 1, "visits": [[0, 0], [1, 0], [2, 1], [2, 2]]}
    assert "devices wait for an operator that is not before operator 2" in flaw_of_bound(waiting)
    assert flaw_of_bound(waiting | {"visits": [[0, 0], [2, 2], [1, 0], [2, 1]]}) == ""


def test_a_row_says_what_the_cost_model_says_of_a_stage_of_its_own() -> None:
    """Two replicas share micro-batches of 2 samples: 2 runs of 2 + 3 ns each on two devices."""
    problem = chain_problem([2], [3], cluster(2, memory=100), weights=[8], saved=[7], mode="sync", mini_batch=4)
    stage = Stage(operators=("op0",), devices=(0, 1), data_parallel=2, micro_batch=2)
    model, plan = CostModel(problem), Plan(stages=(stage,))
    times, memory = model.stage_times(stage, plan), model.stage_memory(plan, 0, [])
    expected = dict.fromkeys(COLUMNS, 0) | {
        "devices": 2, "compute_ns": 2 * 2 * times.period, "crossing_ns": 2 * 2 * times.period,
        "update_ns": 2 * (times.all_reduce - 1), "forward_ns": times.forward, "round_ns": times.period,
        "state_bytes": 2 * memory.held, "saved_bytes": 2 * 2 * memory.per_micro_batch,
        "own_byte_ns": 2 * 2 * memory.per_micro_batch * times.period, "live_bytes": memory.per_micro_batch,
    }  # fmt: skip
    found = choices(problem)
    assert found is not None
    assert [expected[name] for name in COLUMNS] in found.rows.tolist()
    recomputed = expected | {
        "compute_ns": 2 * 2 * 7, "crossing_ns": 2 * 2 * 7, "round_ns": 7, "saved_bytes": 0,
        "own_byte_ns": 2 * 2 * 7 * 7,
    }  # fmt: skip
    assert [recomputed[name] for name in COLUMNS] in found.rows.tolist()
    assert set(found.rows[:, DEVICES]) == {1, 2}


def test_devices_that_wait_bind() -> None:
    """Two layers on two devices, one sample each run: one device waits for a forward of the first, 3 ns."""
    problem = chain_problem(
        [3, 3], [3, 3], cluster(2, bandwidth=1e6), weights=[1000, 1000], mode="sync", mini_batch=4,
        pins=Pins(micro_batch=1),
    )  # fmt: skip
    bound = time_bound(problem)
    assert (bound.parts["work"], bound.parts["reduce"]) == (24, 24)
    assert bound.parts["fill"] == 27  # (48 + 3 before the first + 3 behind the last) / 2


def test_an_all_reduce_binds() -> None:
    """All replicas pinned: each device runs all of it, and its part of 1,000 bytes twice around a ring of two."""
    problem = chain_problem(
        [3, 3], [3, 3], cluster(2), weights=[500, 500], mode="async", mini_batch=4, pins=Pins(data_parallel=2)
    )
    bound = time_bound(problem)
    assert (bound.kind, bound.parts["work"], bound.ns) == ("reduce", 24, 24 + 2 * 499)


def test_memory_binds_where_micro_batches_must_be_small() -> None:
    """A sample takes 10 ns alone and in company 6: with room for one or two, most samples run alone."""
    free = chain_problem([0, 0], [0, 0], cluster(1), saved=[10, 10], mode="sync", mini_batch=4)
    (costs,) = free.profile.costs
    operators = tuple(
        replace(each, forward_s=(5e-9, 6e-9, 12e-9), backward_s=(5e-9, 6e-9, 12e-9)) for each in costs.operators
    )
    costs = replace(costs, micro_batches=(1, 2, 4), operators=operators)
    free = replace(free, profile=replace(free.profile, costs=(costs,)), pins=Pins(recompute="none"))
    assert (time_bound(free).kind, time_bound(free).ns) == ("work", 48)
    one = replace(free, cluster=cluster(1, memory=20))
    bound = time_bound(one)
    assert 60 <= bound.parts["memory"] <= 80  # four samples one by one: 4 x 20
    assert (bound.kind, bound.ns) == ("groups", 80)


def with_overhead(time_s: float, memory_bytes: int, weights: list[int]) -> Problem:
    """Four layers that save 10 bytes a sample; n samples take 1 + n times `time_s` forward, and backward."""
    on = cluster(2, memory=memory_bytes)
    free = chain_problem([0] * 4, [0] * 4, on, saved=[10] * 4, weights=weights, mini_batch=4)
    (costs,) = free.profile.costs
    sizes = (1, 2, 4)
    times = tuple(time_s * (1 + samples) for samples in sizes)
    operators = tuple(replace(each, forward_s=times, backward_s=times) for each in costs.operators)
    costs = replace(costs, micro_batches=sizes, operators=operators)
    return replace(free, profile=replace(free.profile, costs=(costs,)))


def test_all_operators_hold_something_at_one_instant(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 21 bytes a device all layers run samples alone, 40 ns forward and 40 ns backward.

    Over time the mean is less: a stage that recomputes holds a pair only while it runs. When the last forward ends
    none of them has let go.
    """
    problem, alone = with_overhead(20e-9, 21, [0] * 4), 4 * 4 * (40 + 40) // 2
    proof = time_proof(problem)
    assert proof is not None
    assert proof.claimed_ns >= alone
    monkeypatch.setattr(search, "INSTANTS", ())
    over_time = time_proof(problem)
    assert over_time is not None
    assert over_time.claimed_ns < alone


@pytest.mark.parametrize(("memory_bytes", "weight"), [(21, 0), (84, 10)])
def test_the_checker_counts_one_instant_as_the_search_does(memory_bytes: int, weight: int) -> None:
    proof = time_proof(with_overhead(20e-9, memory_bytes, [weight] * 4))
    assert proof is not None
    assert proof.instant > 0
    document = proof.document()
    assert flaw_of_bound(document) == ""
    assert "ns suffice" in flaw_of_bound(document | {"claimed_ns": proof.claimed_ns * 1003 // 1000})


@pytest.mark.parametrize(("mode", "micro_batch", "replicas"), [("async", 2, 2), ("sync", 2, 1), ("async", 1, 1)])
def test_replicas_that_share_hold_it_on_each_device(mode: RegimeMode, micro_batch: int, replicas: int) -> None:
    """In async one pipeline has a stage once. In sync its replicas may be in pipelines that share device sets. Of
    replicas in turn, which alone take micro-batches of one sample, one holds it.
    """
    pins = Pins(data_parallel=2, micro_batch=micro_batch)
    on = cluster(2, memory=100)
    found = choices(chain_problem([2], [3], on, saved=[7], mode=mode, mini_batch=2, pins=pins))
    assert found is not None
    assert found.least(LIVE).tolist() == [7 * replicas]


def test_what_is_not_before_the_last_operator_is_not_counted() -> None:
    """1 and 2 read from 0; 2 saves more, so that 1 need not hold anything when 2's forward ends."""
    problem = dag_problem([1] * 3, [1] * 3, [(0, (1, 2), 0)], cluster(2), saved=[5, 6, 7], mini_batch=1)
    found = choices(problem)
    assert found is not None
    assert found.least(LIVE).tolist() == [5, 0, 7]


def test_the_instant_is_one_for_all_types_of_devices() -> None:
    """1 and 2 read from 0. On one type 1 saves more, on the other one 2: only one of them ends the forward."""
    on = cluster(2)
    problem = dag_problem([1] * 3, [1] * 3, [(0, (1, 2), 0)], on, saved=[5, 9, 1])
    (costs,) = problem.profile.costs
    saved = zip(costs.operators, (5.0, 1.0, 9.0), strict=True)
    other = replace(
        costs,
        device_type="old",
        operators=tuple(replace(each, saved_bytes_per_sample=some) for each, some in saved),
    )
    mixed = replace(on, types=(*on.types, replace(on.types[0], name="old")), devices=("gpu", "old"))
    profile = replace(problem.profile, costs=(costs, other))
    found = choices(replace(problem, cluster=mixed, profile=profile))
    assert found is not None
    assert sorted(found.most(LIVE)[1:] > 0) == [False, True]


def test_nothing_is_said_where_no_plan_fits() -> None:
    problem = chain_problem([1, 1], [1, 1], cluster(2, memory=10), weights=[100, 1], mode="sync", mini_batch=2)
    assert choices(problem) is None
    assert time_proof(problem) is None
    assert set(time_bound(problem).parts) == {"work", "operator", "path"}
    together = chain_problem([1] * 4, [1] * 4, cluster(2, memory=15), weights=[6] * 4, mode="sync", mini_batch=2)
    assert choices(together) is not None
    assert time_bound(together).parts["memory"] == time_bound(together).parts["fill"]


def test_the_path_is_the_longest_and_what_stands_beside_it_is_counted_in_time() -> None:
    """0 -> 1 -> 3 and 0 -> 2 -> 3; 4 alone."""
    problem = dag_problem([1] * 5, [1] * 5, [(0, (1, 2), 0), (1, (3,), 0), (2, (3,), 0)], cluster(2))
    spine = spine_of(problem.profile.graph, [1, 1, 5, 1, 2])
    assert spine.operators == (0, 2, 3)
    assert (spine.after, spine.before) == ((0, 1, 1, 2, 0), (1, 2, 2, 3, 3))
    assert spine.visits(waits=True) == (
        (4, STARTED), (0, PLACED), (1, STARTED), (2, PLACED), (1, SAVES), (3, PLACED), (4, SAVES),
    )  # fmt: skip
    assert spine.visits(waits=False) == ((0, PLACED), (2, PLACED), (1, SAVES), (3, PLACED), (4, SAVES))


def test_a_plan_reaches_a_bound_of_memory() -> None:
    """One device, one sample at a time: what fits takes what the bound says."""
    problem = chain_problem([5], [5], cluster(1, memory=10), saved=[10], mode="sync", mini_batch=3)
    plan = stages_plan([[0]])
    assert time_bound(problem).ns == 3 * CostModel(problem).stage_times(plan.stages[0], plan).period == 30
