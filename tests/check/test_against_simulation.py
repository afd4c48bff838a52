"""The judge and the simulator share no code: what one runs the other finds valid, and both see the same memory."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipebench.check import check_schedule, check_trace
from pipebench.domain.cluster import LinkLevel, LinkMode
from pipebench.domain.plan import Plan
from pipebench.domain.schedule import FiniteSchedule
from pipebench.simulation.simulate import simulate
from pipebench.simulation.tasks import Deadlock
from tests.builders import chain_problem, cluster, dag_problem, stages_plan
from tests.check.orders import lane
from tests.check.test_periodic import one_f_one_b_star
from tests.nightly import examples

MODES: tuple[LinkMode, ...] = ("half", "full", "delay")


@settings(max_examples=examples(60), deadline=None)
@given(st.data())
def test_random_orders(data: st.DataObject) -> None:
    """Stage graphs with replicas, unequal micro-batches, recomputation, split backwards and shared ports."""
    size = data.draw(st.integers(2, 4))
    pairs = [(i, j) for i in range(size) for j in range(i + 1, size)]
    edges = sorted(data.draw(st.sets(st.sampled_from(pairs), max_size=5)))
    replicas = [data.draw(st.integers(1, 2)) for _ in range(size)]
    on = cluster(sum(replicas), link_mode=data.draw(st.sampled_from(MODES)))
    if data.draw(st.booleans()):
        shared = LinkLevel(name="net", group=8, bandwidth_bytes_s=1e9, shared_bandwidth_bytes_s=0.3e9)
        on = msgspec.structs.replace(on, levels=(LinkLevel(name="node", group=2, bandwidth_bytes_s=2e9), shared))
    times = st.lists(st.integers(0, 9), min_size=size, max_size=size)
    problem = dag_problem(
        data.draw(times), data.draw(times), [(i, (j,), data.draw(st.integers(0, 9))) for i, j in edges], on,
        weights=data.draw(times), saved=data.draw(times), mini_batch=8,
        mode=data.draw(st.sampled_from(["sync", "async"])),
    )  # fmt: skip
    costs = problem.profile.costs[0]
    parts = tuple(
        msgspec.structs.replace(c, weight_gradient_s=(min(data.draw(times)[0] / 1e9, c.backward_s[0]),))
        for c in costs.operators
    )
    profile = msgspec.structs.replace(problem.profile, costs=(msgspec.structs.replace(costs, operators=parts),))
    problem = msgspec.structs.replace(problem, profile=profile)
    stages = [
        msgspec.structs.replace(
            s,
            micro_batch=data.draw(st.sampled_from([2, 4, 8])),
            recompute=data.draw(st.sampled_from(["none", "stage"])),
        )
        for s in stages_plan([[o] for o in range(size)], replicas=replicas, micro_batch=8).stages
    ]
    plan = Plan(stages=tuple(stages))
    lanes = []
    for number, stage in enumerate(stages):
        count = 8 // stage.micro_batch
        warm_up = data.draw(st.integers(1, count))
        split = data.draw(st.booleans())
        order = [f"F{number}.{m}" for m in range(warm_up)]
        for m in range(count):
            order += [f"I{number}.{m}", f"W{number}.{m}"] if split else [f"B{number}.{m}"]
            order += [f"F{number}.{m + warm_up}"] if m + warm_up < count else []
        order += [f"R{number}.0"] if stage.data_parallel > 1 else []
        lanes.append(lane(stage.devices, " ".join(order)))
    schedule = FiniteSchedule(lanes=tuple(lanes))
    verdict = check_schedule(problem, plan, schedule)
    if verdict.status == "invalid":
        assert verdict.witness is not None
        assert verdict.witness.rule == "C4"
        with pytest.raises(Deadlock):
            simulate(problem, plan, schedule)
        return
    trace = simulate(problem, plan, schedule)
    traced = check_trace(problem, plan, schedule, trace)
    assert (traced.status, traced.witness) == ("valid", None)
    assert traced.peak_bytes == verdict.peak_bytes


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_periodic_patterns(data: st.DataObject) -> None:
    """1F1B* at a random period is valid, and so is its run; a run as soon as possible holds no less."""
    size = data.draw(st.integers(1, 4))
    forward, backward = ([data.draw(st.integers(1, 9)) for _ in range(size)] for _ in range(2))
    hops = [data.draw(st.integers(0, 6)) for _ in range(size - 1)]
    longest = max(*(f + b for f, b in zip(forward, backward, strict=True)), *(2 * h for h in hops), 1)
    period = longest + data.draw(st.integers(0, 20))
    schedule, groups = one_f_one_b_star(forward, backward, hops, period)
    problem = chain_problem(
        forward, backward, cluster(size), activations=[0, *hops, 0], saved=[1] * size, weights=[0] * size
    )
    plan = stages_plan([[o] for o in range(size)])
    verdict = check_schedule(problem, plan, schedule)
    assert (verdict.status, verdict.witness) == ("valid", None)
    buffers = [2 * (hops[i - 1] if i else 0) + 2 * (hops[i] if i < size - 1 else 0) for i in range(size)]
    assert verdict.peak_bytes == {i: groups[i] + buffers[i] for i in range(size)}
    traced = check_trace(problem, plan, schedule, simulate(problem, plan, schedule))
    assert (traced.status, traced.witness) == ("valid", None)
